"""A broker process for tests: started on a free port, stopped, killed and restarted."""

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

from odradek.host.lifetime_pipe import LifetimePipe
from odradek.local.stable_ports import find_stable_port

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

Property = str | int | float | bool

READY_LINE = re.compile(
    r"odradek broker (?P<node>\d+) is ready on (?P<host>.+):(?P<port>\d+) "
    r"\(data in (?P<data>.+?)(?:; metrics on (?P<metrics>http\S+))?\)$"
)
START_TIMEOUT_S = 30.0
STOP_TIMEOUT_S = 30.0
EXIT_TIMEOUT_S = 1.0  # after a broker has closed its output, for it to exit with its own exit code
KEPT_LINES = 1000
DEFAULT_PROPERTIES: Mapping[str, Property] = {
    "group.initial.rebalance.delay.ms": 0,  # the default of 3 s would delay the first poll of every group
}


class BrokerError(RuntimeError):
    """The broker did not start or did not stop. The message ends with its output."""


def property_text(value: Property) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def broker_environment() -> dict[str, str]:
    """This process's environment without ODRADEK_ variables: a test's broker is configured by the test alone."""
    return {name: value for name, value in os.environ.items() if not name.startswith("ODRADEK_")}


class RunningBroker:
    """A broker in its own process, with its data in its own directory.

    `properties` have Kafka's names (`{"num.partitions": 3}`) and take precedence over DEFAULT_PROPERTIES. Without
    `data_directory` a temporary directory is created, and removed by `close`. The broker stops when this process
    ends, even if it is killed.
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
        self.metrics_url: str | None = None
        """The address of /metrics while the broker runs; None if it serves none."""
        self.properties = dict(properties or {})
        self._temporary = None if data_directory is not None else tempfile.mkdtemp(prefix="odradek-")
        self.data_directory = data_directory or os.path.join(self._temporary or "", "data")
        self.process: subprocess.Popen[str] | None = None
        self._lines: collections.deque[str] = collections.deque(maxlen=KEPT_LINES)
        self._is_ready = False
        self._lifetime = LifetimePipe()

    @property
    def bootstrap_servers(self) -> str:
        """Value of `bootstrap.servers` for clients."""
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
        """Output of the broker: its last thousand lines."""
        return "\n".join(self._lines)

    def start(self) -> Self:
        """Start the process and wait until it is ready; BrokerError with its output if it does not start."""
        if self.is_running:
            return self
        if self.port == 0 and "listeners" not in self.properties:
            self.port = find_stable_port()  # one of the kernel's choice can be taken while the broker restarts
        with self._lifetime.opened() as watched:
            self.process = self._start_process(self._command(watched), watched)
        self._is_ready = False
        is_settled = threading.Event()  # the broker is ready, or its output has ended
        threading.Thread(target=self._read_output, args=(self.process.stdout, is_settled), daemon=True).start()
        is_settled.wait(START_TIMEOUT_S)
        if not self._is_ready:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(EXIT_TIMEOUT_S)
            self.kill()
            code = self.process.returncode
            raise BrokerError(f"the broker did not start (exit code {code}); it printed:\n{self.output}")
        return self

    @staticmethod
    def _start_process(command: list[str], watched: int) -> subprocess.Popen[str]:
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            pass_fds=[watched],
            env=broker_environment(),
            text=True,
            errors="replace",
            start_new_session=True,  # Ctrl-C in the terminal reaches this process only, which then stops the broker
        )

    def _command(self, watched: int) -> list[str]:
        settings: dict[str, Property] = {
            "log.dirs": self.data_directory,
            **DEFAULT_PROPERTIES,
            **self.properties,
            "listeners": self.properties.get("listeners", f"PLAINTEXT://{self.host}:{self.port}"),
        }
        overrides = [f"--override={name}={property_text(value)}" for name, value in settings.items()]
        return [sys.executable, "-m", "odradek", "broker", f"--stop-with={watched}", *overrides]

    def _read_output(self, stream: IO[str], is_settled: threading.Event) -> None:
        """Read the broker's output, so that it never blocks on a full pipe, and look for the ready line."""
        with stream:
            for line in stream:
                self._lines.append(line.rstrip("\n"))
                match = None if self._is_ready else READY_LINE.search(line.rstrip("\n"))
                if match is not None:
                    self.port = int(match["port"])
                    self.metrics_url = match["metrics"]
                    self._is_ready = True
                    is_settled.set()
        is_settled.set()

    def stop(self) -> None:
        """Stop the broker with SIGTERM and wait for it, as a service manager does."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """Kill the broker with SIGKILL, as a crash would."""
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
            self._lifetime.close()

    def restart(self) -> Self:
        """Stop the broker if it runs, and start it on the same port and data. Clients reconnect by themselves."""
        self.stop()
        return self.start()

    def close(self) -> None:
        """Stop the broker and remove the temporary directory."""
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

    Properties have Kafka's names: in a mapping with dots, as keywords with underscores instead.
    """
    named = {name.replace("_", "."): value for name, value in more.items()}
    running = RunningBroker({**(properties or {}), **named})
    try:
        yield running.start()
    finally:
        running.close()
