"""Forks are as a user's command is: its output, its exit code, and processor time that is counted."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from tests.forks.client import fork_server
from tests.slow_files import TICKS_PER_S, descendants_seconds

if TYPE_CHECKING:
    import subprocess

    from odradek.local.prepared import PreparedProcess


@pytest.fixture
def server() -> PreparedProcess:
    return fork_server()


def run(server: PreparedProcess, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    return server.run(arguments, os.environ, b"", 60)


def test_the_processor_time_of_forks_that_ended_is_counted(server: PreparedProcess) -> None:
    """So that `--slow-files` reports what commands and brokers cost."""
    run(server, "--help")
    before_s = descendants_seconds()
    for _ in range(5):
        run(server, "--help")
    run(server, "--version")  # the server waits for those before it
    assert descendants_seconds() - before_s > 5 / TICKS_PER_S


@pytest.mark.parametrize(
    ("arguments", "code"), [(["--version"], 0), (["topic", "list", "-b", "127.0.0.1:1"], 1), (["--no-such"], 2)]
)
def test_the_exit_code_is_that_of_the_command(server: PreparedProcess, arguments: list[str], code: int) -> None:
    assert run(server, *arguments).returncode == code


def test_output_that_cannot_be_written_fails_as_without_forks(server: PreparedProcess) -> None:
    with open("/dev/full", "wb") as full, open(os.devnull, "r+b") as null:
        streams = {0: null.fileno(), 1: full.fileno(), 2: null.fileno()}
        with server.start(["--version"], os.environ, streams) as process:
            assert process.wait(60) == 1
