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
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from typing import IO, TYPE_CHECKING, BinaryIO, Self

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

FORKS_VARIABLE = "ODRADEK_FORKS"
MAIN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "prepared_main.py")
BROKER_MODULES = ("odradek.cli.main", "odradek.cli.broker", "odradek.server.main", "uvloop")
WHOLE_BROKER = "odradek.server.broker:load_whole_broker"
COVERAGE_VARIABLES = ("COVERAGE_PROCESS_START", "COVERAGE_PROCESS_CONFIG")
START_TIMEOUT_S = 30.0  # for the pid of a fork, which the first start has when the modules are imported


def is_possible() -> bool:
    is_on = os.environ.get(FORKS_VARIABLE) != "off"
    return is_on and sys.platform == "linux" and not any(name in os.environ for name in COVERAGE_VARIABLES)


class PreparedProcess:
    """Threads may start processes at the same time."""

    def __init__(self, modules: Sequence[str], load_when_idle: str = "") -> None:
        """`load_when_idle`, module:function, is called while no start waits, to import more."""
        self._directory = tempfile.TemporaryDirectory(prefix="odradek-forks-")
        self._path = os.path.join(self._directory.name, "socket")
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
            listener.bind(self._path)
            listener.listen(16)
            descriptor = listener.fileno()
            command = [sys.executable, "-P", MAIN, str(descriptor), load_when_idle, *modules]
            # The end of its standard input ends it, and Ctrl-C in the terminal does not reach it.
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, pass_fds=[descriptor], start_new_session=True
            )
        self._owner = os.getpid()

    @property
    def has_ended(self) -> bool:
        """False in forks of its owner: they cannot know, and the socket is not theirs to remove."""
        return self._owner == os.getpid() and self._process.poll() is not None

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._directory.cleanup()

    def start(
        self,
        arguments: Sequence[str],
        environment: Mapping[str, str],
        descriptors: Mapping[int, int],
        *,
        directory: str | None = None,
        has_own_session: bool = False,
    ) -> ForkedProcess:
        """`descriptors` of this process, by their numbers in the new one. OSError if there is no fork."""
        request = {
            "arguments": [os.fspath(each) for each in arguments],
            "environment": dict(environment),
            "directory": directory or os.getcwd(),
            "descriptors": list(descriptors),
            "has_own_session": has_own_session,
        }
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            connection.settimeout(START_TIMEOUT_S)
            connection.connect(self._path)
            rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors.values()))]
            connection.sendmsg([json.dumps(request).encode()], rights)
            if (pid := _receive_number(connection)) is None:
                raise ConnectionResetError("the prepared process has closed the connection")
            connection.settimeout(None)
        except BaseException as error:
            connection.close()
            if isinstance(error, TimeoutError):
                self._process.kill()  # it would start the command later
            raise
        return ForkedProcess(arguments, pid, connection)

    def start_child(
        self, arguments: Sequence[str], watched: int, environment: Mapping[str, str] | None
    ) -> ForkedProcess:
        """In a session of its own, with pipes for its output."""
        (output, output_end), (log, log_end) = os.pipe(), os.pipe()
        try:
            with open(os.devnull, "rb") as null:
                streams = {0: null.fileno(), 1: output_end, 2: log_end, watched: watched}
                inherited = os.environ if environment is None else environment
                process = self.start(arguments, inherited, streams, has_own_session=True)
        except BaseException:
            os.close(output)
            os.close(log)
            raise
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
                code = process.wait(timeout_s)
            return subprocess.CompletedProcess(arguments, code, _content_of(output), _content_of(errors))


class ForkedProcess:
    """The process is a child of a supervisor, a fork of the prepared process, which reports its exit status.

    It has what callers use of a Popen. The end of a `with` block waits for it, and kills it after an exception.
    """

    def __init__(self, arguments: Sequence[str], pid: int, connection: socket.socket) -> None:
        self.args = list(arguments)
        self.pid = pid
        self.returncode: int | None = None
        self.stdout: IO[str] | None = None
        self.stderr: IO[str] | None = None
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
                    self.returncode = _receive_number(self._connection)
                    if self.returncode is None:  # the supervisor was killed
                        with contextlib.suppress(ProcessLookupError):
                            os.kill(self.pid, signal.SIGKILL)
                        self.returncode = -signal.SIGKILL
        return self.returncode

    def send_signal(self, sig: int) -> None:
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):  # it has ended, and its status is on the way
                os.kill(self.pid, sig)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            self.kill()
        for stream in (self.stdout, self.stderr):
            if stream is not None:
                stream.close()
        self.wait()

    def __del__(self) -> None:
        self._connection.close()


def _receive_number(connection: socket.socket) -> int | None:
    """None if the other end has ended."""
    with contextlib.suppress(ConnectionResetError):
        if data := connection.recv(32):
            return int(data)
    return None


def _content_of(stream: BinaryIO) -> bytes:
    stream.seek(0)
    return stream.read()


_prepared: dict[tuple[str, ...], PreparedProcess] = {}
_lock = threading.Lock()


def prepared_process(modules: tuple[str, ...] = BROKER_MODULES, load_when_idle: str = WHOLE_BROKER) -> PreparedProcess:
    """One for each list of modules and each process, also with pytest-xdist; another if it has ended."""
    with _lock:
        if modules in _prepared and _prepared[modules].has_ended:
            _prepared.pop(modules).close()
        if modules not in _prepared:
            _prepared[modules] = PreparedProcess(modules, load_when_idle)
        return _prepared[modules]
