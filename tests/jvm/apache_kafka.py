"""Apache Kafka as a context manager: one KRaft node in a temporary directory on ports that the kernel gave.

It is the oracle of the client tests and the peer of the benchmarks. It ends when its standard input is closed.
"""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from tests.jvm.jars import java_command
from tests.jvm.readiness import answers_with_a_broker

CLUSTER_ID = "b2RyYWRlay1vcmFjbGUxMQ"
NODE_ID = 1
STOP_TIMEOUT_SECONDS = 60  # a kill instead would be a crash, after which it knows other things


class BrokerDidNotStart(RuntimeError):
    """The broker ended, or did not answer in time; the message carries the end of its output."""


def _free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


class ApacheKafka:
    """`with ApacheKafka() as kafka:` gives a broker that answers; `restart()` does what it says."""

    def __init__(
        self,
        properties: Mapping[str, str] | None = None,
        *,
        heap: str = "512m",
        quick_start: bool = True,
        timeout_seconds: float = 180,
        directory: Path | None = None,
        stdin: IO[bytes] | int = subprocess.PIPE,
    ) -> None:
        self._properties = dict(properties or {})
        self._heap = heap
        self._quick_start = quick_start
        self._timeout_seconds = timeout_seconds
        self._owns_directory = directory is None
        self._directory = Path(tempfile.mkdtemp(prefix="apache-kafka-")) if directory is None else directory
        self._stdin = stdin
        self._process: subprocess.Popen[bytes] | None = None
        self.port, self._controller_port = 0, 0

    @property
    def bootstrap_servers(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def log_directory(self) -> Path:
        return self._directory / "data"

    @property
    def output_path(self) -> Path:
        return self._directory / "broker.out"

    @property
    def pid(self) -> int:
        if self._process is None:
            raise RuntimeError("the broker is not running")
        return self._process.pid

    def _write_properties(self) -> Path:
        settings = {
            "process.roles": "broker,controller",
            "node.id": str(NODE_ID),
            "listeners": f"PLAINTEXT://127.0.0.1:{self.port},CONTROLLER://127.0.0.1:{self._controller_port}",
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.voters": f"{NODE_ID}@127.0.0.1:{self._controller_port}",
            "log.dirs": str(self.log_directory),
            "offsets.topic.replication.factor": "1",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "share.coordinator.state.topic.replication.factor": "1",
            "share.coordinator.state.topic.min.isr": "1",
            "group.initial.rebalance.delay.ms": "0",
            **self._properties,
        }
        path = self._directory / "server.properties"
        path.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
        return path

    def start(self) -> None:
        """Start and wait until it answers; retries with other ports if another process took those from the kernel."""
        for attempt in range(3):
            if self.port == 0:
                self.port, self._controller_port = _free_ports(2)
            try:
                self._start_once()
            except BrokerDidNotStart as failure:
                if attempt == 2 or "already in use" not in str(failure):
                    raise
                self.port = 0
                shutil.rmtree(self.log_directory, ignore_errors=True)
            else:
                return

    def _start_once(self) -> None:
        properties = self._write_properties()
        command = java_command(
            "odradek.Broker", str(properties), CLUSTER_ID, heap=self._heap, quick_start=self._quick_start
        )
        with self.output_path.open("wb") as output:
            # Its own session: an interrupt at the terminal must not end the oracle before the tests that use it.
            self._process = subprocess.Popen(
                command, stdin=self._stdin, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
            )
        deadline = time.monotonic() + self._timeout_seconds
        while not answers_with_a_broker("127.0.0.1", self.port):
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.stop()
                raise BrokerDidNotStart(f"Apache Kafka did not start: {self.output_path.read_text()[-3000:]}")
            time.sleep(0.05)  # a poll's pause

    def stop(self) -> None:
        """End it by its own process id, cleanly if it does so in time."""
        process, self._process = self._process, None
        if process is None:
            return
        if process.poll() is None:
            os.kill(process.pid, signal.SIGTERM)
        try:
            process.wait(timeout=STOP_TIMEOUT_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if process.stdin is not None:
            process.stdin.close()

    def wait(self, timeout_seconds: float) -> int:
        """The status with which it ends of itself."""
        if self._process is None:
            raise RuntimeError("the broker is not running")
        return self._process.wait(timeout_seconds)

    def kill(self) -> None:
        """What a crash looks like."""
        if self._process is not None:
            self._process.kill()
        self.stop()

    def leave_running(self) -> None:
        """Forget the process: it ends when its standard input closes, which another process sees to."""
        if self._process is not None:
            self._process.returncode = 0  # else its destructor would warn of a child that still runs
        self._process = None

    def restart(self) -> None:
        self.stop()
        self.start()

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def close(self) -> None:
        self.stop()
        if self._owns_directory:
            shutil.rmtree(self._directory, ignore_errors=True)

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()
