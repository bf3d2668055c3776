"""The brokers that are measured. Each is started by the same steps, with a port and a directory of its own."""

import contextlib
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from tests.jvm.readiness import answers_with_a_broker

START_DEADLINE_S = 120
STOP_DEADLINE_S = 30

PROPERTIES = {
    "num.partitions": "6",
    "log.segment.delete.delay.ms": "1000",  # removed before the next run begins; the default is a minute
}


class BrokerError(RuntimeError):
    """A broker did not start, or ended while it was measured."""


class BrokerKind(Protocol):
    @property
    def key(self) -> str: ...
    @property
    def title(self) -> str: ...
    @property
    def is_odradek(self) -> bool: ...
    def prepare(self, directory: Path, port: int) -> None:
        """Format the directory before the first start; not part of the measured start."""

    def member(self, properties: Mapping[str, str]) -> "BrokerKind":
        """A broker of this kind with these properties as well, for a cluster."""

    def secured(self, ssl_port: int, properties: Mapping[str, str]) -> "BrokerKind":
        """A broker of this kind with a TLS listener as well."""

    def environment(self) -> dict[str, str]: ...
    def command(self, directory: Path, port: int) -> list[str]: ...


@dataclass(frozen=True, slots=True)
class RunningBroker:
    key: str
    title: str
    address: str
    pid: int
    directory: Path
    ssl_address: str | None = None
    ca: str | None = None
    """The file with the certificate that clients of `ssl_address` trust."""


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port: int = taken.getsockname()[1]
        return port


def client_listeners(port: int, ssl_port: int | None) -> list[str]:
    plain = f"PLAINTEXT://127.0.0.1:{port}"
    return [plain] if ssl_port is None else [plain, f"SSL://127.0.0.1:{ssl_port}"]


def start(kind: BrokerKind, directory: Path, port: int) -> "subprocess.Popen[bytes]":
    with (directory / "output").open("ab") as output:
        return subprocess.Popen(
            kind.command(directory, port),
            env=kind.environment(),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )


def stop(process: "subprocess.Popen[bytes]", deadline_s: float = STOP_DEADLINE_S) -> None:
    process.terminate()
    try:
        process.wait(deadline_s)
    except subprocess.TimeoutExpired:
        kill(process)


def kill(process: "subprocess.Popen[bytes]") -> None:
    process.kill()
    process.wait()


def wait_until_ready(kind: BrokerKind, process: "subprocess.Popen[bytes]", directory: Path, port: int) -> None:
    deadline = time.monotonic() + START_DEADLINE_S
    while not answers_with_a_broker("127.0.0.1", port):
        ended = process.poll() is not None
        if ended or time.monotonic() > deadline:
            happened = f"ended with code {process.returncode}" if ended else "does not answer"
            raise BrokerError(f"{kind.title} {happened}; the end of its output:\n{last_output(directory)}")
        time.sleep(0.05)


def last_output(directory: Path, limit: int = 2000) -> str:
    return (directory / "output").read_text(errors="replace")[-limit:].strip() or "(none)"


@contextlib.contextmanager
def running(
    kind: BrokerKind, directory: Path, end: Callable[["subprocess.Popen[bytes]"], None] = stop
) -> Iterator[RunningBroker]:
    """Start a broker in `directory` and yield it when it answers requests; afterwards call `end` on its process."""
    directory.mkdir(parents=True)
    port = free_port()
    kind.prepare(directory, port)
    process = start(kind, directory, port)
    try:
        wait_until_ready(kind, process, directory, port)
        yield RunningBroker(kind.key, kind.title, f"127.0.0.1:{port}", process.pid, directory)
        if process.poll() is not None:
            raise BrokerError(f"{kind.title} ended with code {process.returncode}:\n{last_output(directory)}")
    finally:
        end(process)
