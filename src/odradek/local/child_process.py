"""Commands of `odradek` as child processes: their start, their ready line, their log, their end."""

from __future__ import annotations

import collections
import contextlib
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import IO, TYPE_CHECKING, Any, Protocol, Self, TypeAlias

from odradek.conventions.failures import without_prefix
from odradek.host.lifetime_pipe import LifetimePipe
from odradek.local import prepared

if TYPE_CHECKING:
    import signal


def command_name() -> str:
    """`odradek`, or what to type instead in the current directory, such as `.venv/bin/odradek` after `make up`."""
    if shutil.which("odradek") is not None:
        return "odradek"
    installed = os.path.join(os.path.dirname(sys.executable), "odradek")
    for path in (sys.argv[0], installed):
        if os.path.basename(path) == "odradek" and os.access(path, os.X_OK) and os.path.isfile(path):
            return shlex.quote(nearest(path))
    return f"{shlex.quote(nearest(sys.executable))} -m odradek"


def nearest(path: str) -> str:
    """The path relative to the current directory, or the absolute path if that is shorter."""
    whole = os.path.abspath(path)
    relative = os.path.relpath(whole)
    if os.sep not in relative:
        relative = os.path.join(os.curdir, relative)  # a shell searches a bare name on PATH
    return min(relative, whole, key=len)


KEPT_LINES = 1000


class StartedProcess(Protocol):
    """A Popen or a ForkedProcess."""

    args: Any
    pid: int
    returncode: int | None
    stdout: IO[Any] | None
    stderr: IO[Any] | None

    def poll(self) -> int | None: ...

    def wait(self, timeout: float | None = None) -> int: ...

    def send_signal(self, sig: int) -> None: ...

    def terminate(self) -> None: ...

    def kill(self) -> None: ...


StartProcess: TypeAlias = "Callable[[Sequence[str], int, Mapping[str, str] | None], StartedProcess]"


def odradek_command(*words: str) -> list[str]:
    return [sys.executable, "-m", "odradek", *words]


def end_process(process: StartedProcess, number: signal.Signals, timeout_s: float) -> bool:
    """Send the signal and wait; kill the process if it has not ended in time. Returns whether it ended in time."""
    if process.poll() is None:
        process.send_signal(number)
    try:
        process.wait(timeout_s)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        return False
    return True


def start_process_alone(
    command: Sequence[str], watched: int, environment: Mapping[str, str] | None
) -> subprocess.Popen[str]:
    return subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        pass_fds=[watched],
        env=environment,
        text=True,
        errors="replace",
        start_new_session=True,
    )


def start_process_as_fork(
    command: Sequence[str], watched: int, environment: Mapping[str, str] | None
) -> StartedProcess:
    """For a command of `odradek_command`. Starts it alone if the prepared process cannot, as with an environment that
    is too large for one message."""
    with contextlib.suppress(OSError):
        return prepared.prepared_process().start_child(command[len(odradek_command()) :], watched, environment)
    return start_process_alone(command, watched, environment)


class ChildProcess:
    """A command with the option `--stop-with`. It ends with this process, even if this process is killed.

    A JSON object on its standard output reports that it is ready. Its standard error is its log. One thread reads each,
    so that the command never waits for its reader; these threads call the functions given here. The command is in a
    session of its own, so that Ctrl-C in the terminal reaches this process only. It may be started again when it has
    ended.
    """

    def __init__(
        self, *, on_ready: Callable[[], None] = lambda: None, on_line: Callable[[str], None] = lambda _line: None,
        on_output_end: Callable[[], None] = lambda: None, start_process: StartProcess | None = None,
    ) -> None:  # fmt: skip
        """`start_process` starts the command, with the descriptor that it watches and its environment."""
        self.process: StartedProcess | None = None
        self.facts: dict[str, Any] = {}
        """The object that reports that the command is ready; empty until then."""
        self.lines: collections.deque[str] = collections.deque(maxlen=KEPT_LINES)
        """The last lines of the log."""
        self._on_ready = on_ready
        self._on_line = on_line
        self._on_output_end = on_output_end
        self._start_process = start_process or start_process_alone
        self._lifetime = LifetimePipe()

    def start(self, command: Sequence[str], environment: Mapping[str, str] | None = None) -> None:
        self.facts = {}
        self._is_settled = threading.Event()  # the command is ready, or its output has ended
        with self._lifetime.opened() as watched:
            process = self.process = self._start_process([*command, f"--stop-with={watched}"], watched, environment)
        log = threading.Thread(target=self._read_log, args=(process.stderr,), daemon=True)
        log.start()
        arguments = (process.stdout, log, self._is_settled)
        threading.Thread(target=self._read_output, args=arguments, daemon=True).start()

    @property
    def is_running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    @property
    def pid(self) -> int:
        assert self.process is not None, "the process was not started"
        return self.process.pid

    def wait_until_ready(self, timeout_s: float | None = None) -> bool:
        """False if the output has ended, or the time is over."""
        self._is_settled.wait(timeout_s)
        return bool(self.facts)

    def send(self, number: signal.Signals) -> None:
        if self.process is not None and self.is_running:
            self.process.send_signal(number)

    def wait(self, timeout_s: float | None = None) -> bool:
        """Whether the process has ended in time."""
        assert self.process is not None
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(timeout_s)
        return not self.is_running

    def end(self, number: signal.Signals, timeout_s: float) -> bool:
        """Send the signal to a process that was started, and wait; kill it and return False if that takes too long."""
        try:
            return self.process is None or end_process(self.process, number, timeout_s)
        finally:
            self._lifetime.close()

    def error_text(self) -> str:
        """The last line of the log, which is the error of a command that failed, or the exit code."""
        last = next((line for line in reversed(self.lines) if line.strip()), "")
        code = self.process.returncode if self.process is not None else None
        return without_prefix(last.strip()) or f"exit code {code}"

    def _read_output(self, output: IO[str], log: threading.Thread, is_settled: threading.Event) -> None:
        with output:
            for line in output:
                if not self.facts and (facts := _object_of(line)):
                    self.facts = facts
                    is_settled.set()
                    self._on_ready()
        log.join()
        is_settled.set()
        self._on_output_end()

    def _read_log(self, log: IO[str]) -> None:
        with log:
            for line in log:
                self.lines.append(line.rstrip("\n"))
                self._on_line(self.lines[-1])


def _object_of(line: str) -> dict[str, Any]:
    with contextlib.suppress(ValueError):
        found = json.loads(line)
        return found if isinstance(found, dict) else {}
    return {}


class RunningServer(ABC):
    """A server in its own process. Its data is in the given directory, or in a temporary one that `close` removes. It
    stops when this process ends, even if it is killed."""

    def __init__(self, data_directory: str | None, prefix: str, *, is_fork: bool = False) -> None:
        self._temporary = None if data_directory is not None else tempfile.mkdtemp(prefix=prefix)
        is_prepared = is_fork and prepared.is_possible()
        self._child = ChildProcess(start_process=start_process_as_fork if is_prepared else None)

    @abstractmethod
    def start(self) -> Self:
        """Start the process and wait until it is ready."""

    @abstractmethod
    def stop(self) -> None:
        """Stop the process, and wait for its end."""

    def close(self) -> None:
        """Stop the server and remove the temporary directory."""
        try:
            self.stop()
        finally:
            if self._temporary is not None:
                shutil.rmtree(self._temporary, ignore_errors=True)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_exception: object) -> None:
        self.close()
