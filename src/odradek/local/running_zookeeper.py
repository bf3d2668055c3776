"""A ZooKeeper process on this machine: started on a free port by `odradek zookeeper`, stopped, killed, suspended."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import tempfile
from typing import TYPE_CHECKING, Self

from odradek.local.child_process import ChildProcess, odradek_command
from odradek.local.ports import find_stable_port

if TYPE_CHECKING:
    from collections.abc import Iterator

STOP_TIMEOUT_S = 60.0


class ZooKeeperDidNotStart(RuntimeError):
    """The message is its error."""


class RunningZooKeeper:
    """One server with its data in its own directory. It stops when this process ends, even if it is killed."""

    def __init__(self, *, port: int = 0, data_directory: str | None = None) -> None:
        self.host = "127.0.0.1"
        self.port = port
        self._temporary = None if data_directory is not None else tempfile.mkdtemp(prefix="odradek-zookeeper-")
        self._directory = data_directory or self._temporary
        self._child = ChildProcess()
        self.server_pid = 0

    @property
    def connect(self) -> str:
        """Value of `zookeeper.connect`."""
        return f"{self.host}:{self.port}"

    def start(self) -> Self:
        self.port = self.port or find_stable_port()  # one of the kernel's choice can be taken before the next start
        options = ["--format=json", f"--port={self.port}", f"--data-dir={self._directory}"]
        self._child.start(odradek_command("zookeeper", *options))
        if not self._child.wait_until_ready():  # the command itself has a time limit for the start
            self.close()
            raise ZooKeeperDidNotStart(self._child.error_text())
        self.port, self.server_pid = self._child.facts["port"], self._child.facts["pid"]
        return self

    def stop(self) -> None:
        """Sessions survive: they continue when the server runs again before they expire."""
        self._child.end(signal.SIGTERM, STOP_TIMEOUT_S)

    def kill(self) -> None:
        """Kill the server, as a crash would."""
        if self._child.is_running:
            os.kill(self.server_pid, signal.SIGKILL)
        self.stop()

    def suspend(self) -> None:
        """The server hangs, with its connections open, until `resume`."""
        os.kill(self.server_pid, signal.SIGSTOP)

    def resume(self) -> None:
        os.kill(self.server_pid, signal.SIGCONT)

    def close(self) -> None:
        try:
            self.stop()
        finally:
            if self._temporary is not None:
                shutil.rmtree(self._temporary, ignore_errors=True)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_exception: object) -> None:
        self.close()


@contextlib.contextmanager
def zookeeper() -> Iterator[RunningZooKeeper]:
    """A running server: `with zookeeper() as running: RunningBroker({"zookeeper.connect": running.connect})`."""
    with RunningZooKeeper() as running:
        yield running
