"""A ZooKeeper process for tests: started on a free port by `odradek zookeeper`, stopped, killed, suspended."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from typing import TYPE_CHECKING, Any, Self

from odradek.host.lifetime_pipe import LifetimePipe
from odradek.local.stable_ports import find_stable_port

if TYPE_CHECKING:
    from collections.abc import Iterator

STOP_TIMEOUT_S = 60.0


class ZooKeeperDidNotStart(RuntimeError):
    """The message has its output."""


class RunningZooKeeper:
    """One server with its data in its own directory. It stops when this process ends, even if it is killed."""

    def __init__(self, *, port: int = 0, data_directory: str | None = None) -> None:
        self.host = "127.0.0.1"
        self.port = port
        self._temporary = None if data_directory is not None else tempfile.mkdtemp(prefix="odradek-zookeeper-")
        self._directory = data_directory or self._temporary
        self._process: subprocess.Popen[str] | None = None
        self._lifetime = LifetimePipe()
        self.server_pid = 0

    @property
    def connect(self) -> str:
        """Value of `zookeeper.connect`."""
        return f"{self.host}:{self.port}"

    def start(self) -> Self:
        self.port = self.port or find_stable_port()  # one of the kernel's choice can be taken before the next start
        command = [sys.executable, "-m", "odradek", "zookeeper", "--format", "json"]
        command += [f"--port={self.port}", f"--data-dir={self._directory}"]
        with self._lifetime.opened() as watched:
            self._process = process = subprocess.Popen(
                [*command, f"--stop-with={watched}"],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                pass_fds=[watched],
                text=True,
                start_new_session=True,
            )
        assert process.stdout is not None
        line = process.stdout.readline()  # the command itself has a time limit for the start
        if not line:
            _, errors = process.communicate()
            self.close()
            raise ZooKeeperDidNotStart(errors.strip())
        facts: dict[str, Any] = json.loads(line)
        self.port, self.server_pid = facts["port"], facts["pid"]
        return self

    def stop(self) -> None:
        """Sessions survive: they continue when the server runs again before they expire."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """Kill the server, as a crash would."""
        if self._process is not None and self._process.poll() is None:
            os.kill(self.server_pid, signal.SIGKILL)
        self._end(signal.SIGTERM)

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

    def _end(self, signal_number: signal.Signals) -> None:
        process, self._process = self._process, None
        self._lifetime.close()
        if process is None:
            return
        if process.poll() is None:
            process.send_signal(signal_number)
        process.wait(STOP_TIMEOUT_S)
        for stream in (process.stdout, process.stderr):
            if stream is not None:
                stream.close()


@contextlib.contextmanager
def zookeeper() -> Iterator[RunningZooKeeper]:
    """A running server: `with zookeeper() as running: RunningBroker({"zookeeper.connect": running.connect})`."""
    running = RunningZooKeeper()
    try:
        yield running.start()
    finally:
        running.close()
