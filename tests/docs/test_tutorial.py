"""docs/tutorial.md: its commands, run one after the other in an empty folder, print what it shows."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.docs.document import DOCS, Command, actions, shows

if TYPE_CHECKING:
    from collections.abc import Iterator

SHOWN_ADDRESS = "127.0.0.1:9092"
BROKER = "odradek broker "
READING = ("odradek consume", "odradek sql", "odradek pipeline status")  # they may have to wait for the pipeline
FIRST_USE = "fetching Spark's Kafka connector"  # printed once on a machine
LIMIT_S = 240
WAIT_S = 30


class Reader:
    """Runs the commands of the document as its reader would, with a broker on another port."""

    def __init__(self, folder: Path, address: str) -> None:
        self._folder = folder
        self._address = address
        self._environment = {
            **os.environ,
            "COLUMNS": "120",
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "ODRADEK_BOOTSTRAP_SERVER": address,
            "XDG_STATE_HOME": str(folder / "state"),
        }

    def output_of(self, line: str) -> str:
        """Of both streams, in the order in which they were written."""
        done = subprocess.run(
            [sys.executable, "-m", *shlex.split(line)],
            cwd=self._folder, env=self._environment, stdin=subprocess.DEVNULL, text=True, timeout=LIMIT_S, check=False,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        lines = [line for line in done.stdout.splitlines() if not line.startswith(FIRST_USE)]
        output = "\n".join(lines).replace(self._address, SHOWN_ADDRESS)
        return output.replace(f"{self._folder}{os.sep}", "").replace(str(self._folder), ".")

    def differences(self, command: Command) -> str:
        """Empty if the command prints what the document shows; a command that reads results may do so later."""
        deadline = time.monotonic() + WAIT_S
        while not shows(command.output, output := self.output_of(command.line)):
            if time.monotonic() > deadline or not command.line.startswith(READING):
                return f"$ {command.line}\n{output}"
        return ""


@contextmanager
def broker_of(command: Command, folder: Path) -> Iterator[str]:
    """The broker of the document on a free port; its address, once it has printed what the document shows."""
    arguments = [*shlex.split(command.line), "--override", "listeners=PLAINTEXT://127.0.0.1:0"]
    with subprocess.Popen(
        [sys.executable, "-m", *arguments], cwd=folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as process:
        watchdog = threading.Timer(LIMIT_S, process.kill)
        watchdog.start()
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            watchdog.cancel()
            address = line.partition(" ready on ")[2].partition(" ")[0]
            assert shows(command.output, line.replace(address, SHOWN_ADDRESS)), line
            yield address
        finally:
            watchdog.cancel()
            process.terminate()
            process.wait(60)


@pytest.mark.spark
@pytest.mark.soak
@pytest.mark.timeout(600)
def test_its_commands_print_what_it_shows(tmp_path: Path) -> None:
    found = actions((DOCS / "tutorial.md").read_text())
    commands = [each for each in found if isinstance(each, Command)]
    assert len(commands) > 15
    (broker,) = (each for each in commands if each.line.startswith(BROKER))
    differences = []
    with broker_of(broker, tmp_path) as address:
        reader = Reader(tmp_path, address)
        try:
            for action in found:
                if not isinstance(action, Command):
                    action.write(tmp_path)
                elif action is not broker:
                    differences.append(reader.differences(action))
        finally:
            reader.output_of("odradek pipeline stop --all --kill")
    assert "\n".join(filter(None, differences)) == ""
