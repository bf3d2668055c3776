"""Starts `odradek` as forks of a process that has imported its modules, which are most of the cost of a start.

The prepared process ends with this one. On Linux only; not while a coverage measurement of child processes is
configured, which begins with an interpreter; and not with ODRADEK_FORKS=off.
"""

from __future__ import annotations

import array
import contextlib
import json
import os
import select
import socket
import subprocess
import sys
import tempfile
import threading
from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

SWITCH = "ODRADEK_FORKS"
MAIN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "prepared_main.py")
BROKER_MODULES = ("odradek.cli.main", "odradek.cli.broker", "odradek.server.main", "uvloop")
WHOLE_BROKER = "odradek.server.broker:load_whole_broker"
_OF_COVERAGE = ("COVERAGE_PROCESS_START", "COVERAGE_PROCESS_CONFIG")


def is_possible() -> bool:
    is_on = os.environ.get(SWITCH) != "off"
    return is_on and sys.platform == "linux" and not any(name in os.environ for name in _OF_COVERAGE)


class PreparedProcess:
    """Threads may start processes at the same time."""

    def __init__(self, modules: Sequence[str], later: str = "") -> None:
        """`later`, module:function, is called while no start waits, to import more."""
        self._directory = tempfile.TemporaryDirectory(prefix="odradek-forks-")
        self._path = os.path.join(self._directory.name, "socket")
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
            listener.bind(self._path)
            listener.listen(16)
            descriptor = listener.fileno()
            command = [sys.executable, "-P", MAIN, str(descriptor), later, *modules]
            # The end of its standard input ends it.
            self._process = subprocess.Popen(command, stdin=subprocess.PIPE, pass_fds=[descriptor])

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

    def start_child(
        self, arguments: Sequence[str], watched: int, environment: Mapping[str, str] | None
    ) -> subprocess.Popen[str]:
        """In a session of its own, with pipes for its output."""
        (output, output_end), (log, log_end) = os.pipe(), os.pipe()
        try:
            with open(os.devnull, "rb") as nothing:
                streams = {0: nothing.fileno(), 1: output_end, 2: log_end, watched: watched}
                process = self.start(arguments, environment or os.environ, streams, has_own_session=True)
        finally:
            os.close(output_end)
            os.close(log_end)
        process.stdout = open(output, errors="replace")  # noqa: SIM115 - closed by ChildProcess
        process.stderr = open(log, errors="replace")  # noqa: SIM115 - closed by ChildProcess
        return process

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
            return subprocess.CompletedProcess(arguments, code, _content_of(output), _content_of(errors))


class ForkedProcess(subprocess.Popen[str]):
    """The process is a child of the prepared one, which reports its exit status."""

    def __init__(self, arguments: Sequence[str], pid: int, connection: socket.socket) -> None:
        self.args = list(arguments)
        self.pid = pid
        self.returncode: int | None = None
        self.stdin = self.stdout = self.stderr = None
        self._connection = connection
        self._reading = threading.Lock()

    def poll(self) -> int | None:
        return self._receive_status(0)

    def wait(self, timeout: float | None = None) -> int:
        code = self._receive_status(timeout)
        if code is None:
            raise subprocess.TimeoutExpired(self.args, timeout or 0)
        return code

    def _receive_status(self, timeout: float | None) -> int | None:
        if self.returncode is None:
            ended = select.poll()
            ended.register(self._connection, select.POLLIN)
            has_ended = ended.poll(None if timeout is None else timeout * 1000)
            with self._reading:  # one of the threads that wait receives it
                if has_ended and self.returncode is None:
                    self.returncode = int(self._connection.recv(32))
        return self.returncode

    def send_signal(self, sig: int) -> None:
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):  # it has ended, and its status is on the way
                os.kill(self.pid, sig)

    def __del__(self) -> None:
        self._connection.close()


def _content_of(stream: BinaryIO) -> bytes:
    stream.seek(0)
    return stream.read()


_prepared: dict[tuple[str, ...], PreparedProcess] = {}
_lock = threading.Lock()


def prepared_process(modules: tuple[str, ...] = BROKER_MODULES, later: str = WHOLE_BROKER) -> PreparedProcess:
    """One for each list of modules and each process, also with pytest-xdist."""
    with _lock:
        if modules not in _prepared:
            _prepared[modules] = PreparedProcess(modules, later)
        return _prepared[modules]
