"""A broker process and its life: started on a free port, told apart by its ready line, stopped, killed, restarted."""

from __future__ import annotations

import collections
import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from typing import IO, TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

READY_LINE = re.compile(
    r"odradek broker (?P<node>\d+) is ready on (?P<host>.+):(?P<port>\d+) \(data in (?P<data>.+)\)$"
)
START_TIMEOUT_S = 30.0
STOP_TIMEOUT_S = 30.0
LAST_WORDS_S = 1.0  # for a broker that has closed its output to end by itself, with an exit code of its own
KEPT_LINES = 1000

Property = str | int | float | bool


class BrokerError(RuntimeError):
    """The broker did not start, or did not stop; the message ends in what it printed."""


def property_text(value: Property) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _environment() -> dict[str, str]:
    """Ours without settings meant for other brokers: what a test's broker does is said by the test alone."""
    return {name: value for name, value in os.environ.items() if not name.startswith("ODRADEK_")}


class RunningBroker:
    """A broker in a process of its own, with its data in a directory of its own.

    `properties` are Kafka's (`{"num.partitions": 3}`). Without `data_directory` a temporary one is made, and removed
    by `close`. The process ends when this one does, however that happens.
    """

    def __init__(
        self,
        properties: Mapping[str, Property] | None = None,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        data_directory: str | None = None,
    ) -> None:
        self.host = host
        self.port = port
        self.properties = dict(properties or {})
        self._temporary = None if data_directory is not None else tempfile.mkdtemp(prefix="odradek-")
        self.data_directory = data_directory or os.path.join(self._temporary or "", "data")
        self.process: subprocess.Popen[str] | None = None
        self._lines: collections.deque[str] = collections.deque(maxlen=KEPT_LINES)
        self._is_ready = False
        self._leash: int | None = None  # our end of the pipe that the broker watches: closed when we die

    @property
    def bootstrap_servers(self) -> str:
        """What clients take as `bootstrap.servers`."""
        return f"{self.host}:{self.port}"

    @property
    def pid(self) -> int:
        if self.process is None:
            raise BrokerError("the broker is not running")
        return self.process.pid

    @property
    def is_running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    @property
    def output(self) -> str:
        """What the broker printed so far (the last thousand lines)."""
        return "\n".join(self._lines)

    def start(self) -> Self:
        """Start the process and wait until it is ready; BrokerError with its output when it is not."""
        if self.is_running:
            return self
        self._let_go()
        watched, self._leash = os.pipe()
        try:
            self.process = subprocess.Popen(
                self._command(watched),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                pass_fds=[watched],
                env=_environment(),
                text=True,
                errors="replace",
                start_new_session=True,  # Ctrl-C in the terminal is ours to handle, in our order
            )
        finally:
            os.close(watched)
        self._is_ready = False
        is_settled = threading.Event()  # ready, or its output has ended
        threading.Thread(target=self._read_output, args=(self.process.stdout, is_settled), daemon=True).start()
        is_settled.wait(START_TIMEOUT_S)
        if not self._is_ready:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(LAST_WORDS_S)
            self.kill()
            code = self.process.returncode
            raise BrokerError(f"the broker did not start (exit code {code}); it printed:\n{self.output}")
        return self

    def _command(self, watched: int) -> list[str]:
        settings: dict[str, Property] = {
            "log.dirs": self.data_directory,
            **self.properties,
            "listeners": self.properties.get("listeners", f"PLAINTEXT://{self.host}:{self.port}"),
        }
        overrides = [f"--override={name}={property_text(value)}" for name, value in settings.items()]
        return [sys.executable, "-m", "odradek", "broker", f"--stop-with={watched}", *overrides]

    def _read_output(self, stream: IO[str], is_settled: threading.Event) -> None:
        """Keep what the broker prints, so that it never blocks on a full pipe, and look for the ready line."""
        with stream:
            for line in stream:
                self._lines.append(line.rstrip("\n"))
                match = None if self._is_ready else READY_LINE.search(line.rstrip("\n"))
                if match is not None:
                    self.port = int(match["port"])
                    self._is_ready = True
                    is_settled.set()
        is_settled.set()

    def stop(self) -> None:
        """Stop as a service manager does: SIGTERM, then wait. What was acknowledged is on disk."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """SIGKILL: what a crash looks like."""
        self._end(signal.SIGKILL)

    def _end(self, signal_number: signal.Signals) -> None:
        if self.process is None:
            return
        if self.process.poll() is None:
            self.process.send_signal(signal_number)
        try:
            self.process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise BrokerError(f"the broker did not stop on {signal_number.name}; it printed:\n{self.output}") from None
        finally:
            self._let_go()

    def _let_go(self) -> None:
        """Close our end of the pipe; a broker that still watches the other end stops."""
        if self._leash is not None:
            os.close(self._leash)
            self._leash = None

    def restart(self) -> Self:
        """Stop (where it still runs) and start again, on the same port and data: clients reconnect by themselves."""
        self.stop()
        return self.start()

    def close(self) -> None:
        """Stop, and remove the temporary directory."""
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
def broker(properties: Mapping[str, Property] | None = None, /, **more: Property) -> Iterator[RunningBroker]:
    """A running broker: `with broker(num_partitions=3) as running:`.

    Properties are Kafka's: a mapping with their dots, or keywords with underscores in their place.
    """
    named = {name.replace("_", "."): value for name, value in more.items()}
    running = RunningBroker({**(properties or {}), **named})
    try:
        yield running.start()
    finally:
        running.close()
