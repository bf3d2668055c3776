"""`odradek consume` on a terminal: what it waits for, Ctrl-C at any time, and records that are full of commands."""

from __future__ import annotations

import os
import pty
import select
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from odradek.admin.cluster import Cluster
from odradek.admin.groups import group_names
from odradek.testing import broker

if TYPE_CHECKING:
    from collections.abc import Iterator

    from odradek.testing import RunningBroker
    from tests.commands import Run

PATIENCE_S = 60.0
EXIT_S = 1.5  # a second, and the time that a busy machine takes to end a process


class Terminal:
    """A command that runs on a terminal of its own, and what it has shown."""

    def __init__(self, *arguments: str) -> None:
        self.shown = b""
        self._primary, secondary = pty.openpty()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "odradek", *arguments], stdin=subprocess.DEVNULL, stdout=secondary, stderr=secondary
        )
        os.close(secondary)

    def read_until(self, text: bytes) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while text not in self.shown:
            assert time.monotonic() < deadline, self.shown
            self._read()

    def interrupt(self) -> float:
        """How long the command takes to end."""
        began_at = time.monotonic()
        self.process.send_signal(signal.SIGINT)
        while self.process.poll() is None:
            assert time.monotonic() - began_at < PATIENCE_S
            self._read()
        return time.monotonic() - began_at

    def _read(self) -> None:
        if select.select([self._primary], [], [], 0.02)[0]:
            try:
                self.shown += os.read(self._primary, 65_536)
            except OSError:  # the command has ended
                assert self.process.wait(PATIENCE_S) is not None

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._primary)


@contextmanager
def terminal(*arguments: str) -> Iterator[Terminal]:
    running = Terminal(*arguments)
    try:
        yield running
    finally:
        running.close()


@pytest.fixture
def slow_groups() -> Iterator[RunningBroker]:
    with broker({"group.initial.rebalance.delay.ms": 10_000}) as running:
        yield running


def test_ctrl_c_ends_a_command_that_joins_a_group(slow_groups: RunningBroker, offline: Run) -> None:
    address = slow_groups.bootstrap_servers
    assert offline("topic", "create", "numbers", ODRADEK_BOOTSTRAP_SERVER=address).code == 0
    with terminal("consume", "numbers", "-g", "readers", "-b", address) as running:
        running.read_until(b"joining group readers to read numbers; Ctrl-C to stop")
        while not group_names(Cluster(address, {})):  # the group has no member before it has asked to join
            assert running.process.poll() is None
        assert running.interrupt() < EXIT_S
        assert running.process.returncode == 130


def test_a_command_that_waits_says_for_what(bootstrap_server: str, topic: str) -> None:
    with terminal("consume", topic, "-b", bootstrap_server) as running:
        running.read_until(f"waiting for records of {topic}; Ctrl-C to stop".encode())
        assert running.interrupt() < EXIT_S


@pytest.mark.parametrize(
    ("options", "shown"),
    [
        ((), rb"\x1b[31mred\x07\x9b and" + b"\ttab"),
        (("-f", r"%k %h %v\n"), rb"\x1b]0;k h\x1b=\x1b[0m \x1b[31mred"),
        (("--format", "json"), rb'"value":"\u001b[31mred\u0007\u009b and\ttab"'),
    ],
)
def test_control_characters_are_escaped(
    bootstrap_server: str, odradek: Run, topic: str, options: tuple[str, ...], shown: bytes
) -> None:
    producer = Cluster(bootstrap_server, {}).producer({})
    value = "\x1b[31mred\x07\x9b and\ttab"
    producer.produce(topic, value, "\x1b]0;k", headers=[("h\x1b", b"\x1b[0m")])
    assert producer.flush(PATIENCE_S) == 0
    with terminal("consume", topic, "--from-beginning", *options, "-b", bootstrap_server) as running:
        running.read_until(shown)
    assert value in odradek("consume", topic, "-e").output  # a pipe gets the bytes
