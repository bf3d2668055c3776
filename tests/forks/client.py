"""Starts `odradek` in forks of `tests.forks.server`, of which each test process has its own."""

from __future__ import annotations

import array
import contextlib
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src"
WITH_SPARK = ("pipeline", "example")  # importing Spark takes longer than most commands


def command_modules(source: Path = SOURCE) -> tuple[str, ...]:
    """The modules of all commands, but of those with Spark."""
    commands = source / "odradek" / "cli"
    files = [file.relative_to(commands).with_suffix("") for file in sorted(commands.rglob("[a-z]*.py"))]
    return tuple(f"odradek.cli.{'.'.join(file.parts)}" for file in files if file.parts[0] not in WITH_SPARK)


# None of these modules starts a thread or reads the environment when it is imported.
OF_COMMANDS = (
    "confluent_kafka.admin",
    "importlib.metadata",
    *command_modules(),
    *(f"odradek.cli.pipeline.{name}" for name in ("definitions", "redrive", "started")),
    "odradek.pipelines.planning.plan",
    "sqlglot.dialects.databricks",
)
OF_BROKERS = ("odradek.cli.main", "odradek.cli.broker", "odradek.server.main", "uvloop")


class ForkServer:
    """It ends when this process does, because its standard input ends."""

    def __init__(self, modules: Sequence[str]) -> None:
        self._directory = tempfile.TemporaryDirectory(prefix="odradek-forks-")
        self._path = os.path.join(self._directory.name, "socket")
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
            listener.bind(self._path)
            listener.listen(16)
            descriptor = listener.fileno()
            command = [sys.executable, "-m", "tests.forks.server", str(descriptor), *modules]
            self._process = subprocess.Popen(command, stdin=subprocess.PIPE, cwd=ROOT, pass_fds=[descriptor])

    def start(
        self,
        arguments: Sequence[str],
        environment: Mapping[str, str],
        descriptors: Mapping[int, int],
        *,
        directory: str | None = None,
        has_own_session: bool = False,
    ) -> ForkedProcess:
        """`descriptors` of this process, by their numbers in the new one."""
        request = {
            "arguments": [os.fspath(each) for each in arguments],
            "environment": dict(environment),
            "directory": directory or os.getcwd(),
            "descriptors": list(descriptors),
            "has_own_session": has_own_session,
        }
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        connection.connect(self._path)
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors.values()))]
        connection.sendmsg([json.dumps(request).encode()], rights)
        return ForkedProcess(arguments, int(connection.recv(32)), connection)

    def run(
        self,
        arguments: Sequence[str],
        environment: Mapping[str, str],
        stdin: bytes,
        timeout_s: float,
        directory: str | None = None,
    ) -> subprocess.CompletedProcess[bytes]:
        with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
            given.write(stdin)
            given.seek(0)
            streams = {0: given.fileno(), 1: output.fileno(), 2: errors.fileno()}
            with self.start(arguments, environment, streams, directory=directory) as process:
                try:
                    code = process.wait(timeout_s)
                except subprocess.TimeoutExpired:
                    process.kill()
                    raise
            return subprocess.CompletedProcess(arguments, code, content_of(output), content_of(errors))


class ForkedProcess(subprocess.Popen[str]):
    """The process is a child of the server, which tells its exit status."""

    def __init__(self, arguments: Sequence[str], pid: int, connection: socket.socket) -> None:
        self.args = list(arguments)
        self.pid = pid
        self.returncode: int | None = None
        self.stdin = self.stdout = self.stderr = None
        self._connection = connection

    def poll(self) -> int | None:
        return self._receive_status(0)

    def wait(self, timeout: float | None = None) -> int:
        code = self._receive_status(timeout)
        if code is None:
            raise subprocess.TimeoutExpired(self.args, timeout or 0)
        return code

    def _receive_status(self, timeout: float | None) -> int | None:
        if self.returncode is None:
            self._connection.settimeout(timeout)
            try:
                self.returncode = int(self._connection.recv(32))
            except (TimeoutError, BlockingIOError):
                return None
            self._connection.close()
        return self.returncode

    def send_signal(self, sig: int) -> None:
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):  # it has ended, and its status is on the way
                os.kill(self.pid, sig)

    def __del__(self) -> None:
        self._connection.close()


def content_of(stream: BinaryIO) -> bytes:
    stream.seek(0)
    return stream.read()


_servers: dict[Sequence[str], ForkServer] = {}
_lock = threading.Lock()


def fork_server(modules: Sequence[str] = OF_COMMANDS) -> ForkServer:
    """One for each list of modules. Threads that start brokers at the same time share it."""
    with _lock:
        if modules not in _servers:
            _servers[modules] = ForkServer(modules)
        return _servers[modules]
