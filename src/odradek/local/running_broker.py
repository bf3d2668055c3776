"""A broker process on this machine: started on a free port, stopped, killed and restarted."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator, Mapping
from typing import Self

from odradek.local.child_process import RunningServer, StartedProcess, odradek_command
from odradek.local.ports import find_stable_port

Property = str | int | float | bool

START_TIMEOUT_S = 30.0
STOP_TIMEOUT_S = 30.0
EXIT_TIMEOUT_S = 1.0  # after a broker has closed its output, for it to exit with its own exit code
DEFAULT_PROPERTIES: Mapping[str, Property] = {
    "group.initial.rebalance.delay.ms": 0  # the default of 3 s would delay the first poll of every group
}


class BrokerError(RuntimeError):
    """The broker did not start or did not stop. The message ends with its output; `reason` has its last line only."""

    def __init__(self, message: str, reason: str = "") -> None:
        super().__init__(message)
        self.reason = reason or message


def property_text(value: Property) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def named_properties(properties: Mapping[str, Property] | None, more: Mapping[str, Property]) -> dict[str, Property]:
    """The properties, with those that are given as keywords: these have underscores instead of dots."""
    return {**(properties or {}), **{name.replace("_", "."): value for name, value in more.items()}}


class RunningBroker(RunningServer):
    """A broker in its own process, with its data in its own directory.

    `properties` have Kafka's names (`{"num.partitions": 3}`) and take precedence over DEFAULT_PROPERTIES. Without
    `data_directory` a temporary directory is created, and removed by `close`. The broker stops when this process
    ends, even if it is killed. With `is_fork` it is forked from a process that has imported its modules, if that is
    possible (`odradek.local.prepared`), which pays off from the second broker on.
    """

    def __init__(
        self, properties: Mapping[str, Property] | None = None, *, host: str = "127.0.0.1", port: int = 0,
        data_directory: str | None = None, is_fork: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(data_directory, "odradek-", is_fork=is_fork)
        self.host = host
        self.port = port
        self.ports: dict[str, int] = {}
        """Ports by the names of their listeners, in the order of `listeners`, while the broker runs."""
        self.metrics_url: str | None = None
        """The address of /metrics while the broker runs; None if it serves none."""
        self.properties = dict(properties or {})
        self.data_directory = data_directory or os.path.join(self._temporary or "", "data")

    @property
    def bootstrap_servers(self) -> str:
        """Value of `bootstrap.servers` for clients."""
        return f"{self.host}:{self.port}"

    @property
    def process(self) -> StartedProcess | None:
        return self._child.process

    @property
    def pid(self) -> int:
        if self.process is None:
            raise BrokerError("the broker is not running")
        return self.process.pid

    @property
    def is_running(self) -> bool:
        return self._child.is_running

    @property
    def output(self) -> str:
        """Log of the broker: its last thousand lines."""
        return "\n".join(self._child.lines)

    def start(self) -> Self:
        """Start the process and wait until it is ready; BrokerError with its output if it does not start."""
        if self.is_running:
            return self
        if self.port == 0 and "listeners" not in self.properties:
            self.port = find_stable_port()  # one of the kernel's choice can be taken while the broker restarts
        # A broker is configured by its properties alone, not by this process's environment.
        environment = {name: value for name, value in os.environ.items() if not name.startswith("ODRADEK_")}
        self._child.start(self._command(), {**environment, "ODRADEK_LOG_FORMAT": "text"})
        if not self._child.wait_until_ready(START_TIMEOUT_S):
            self._child.wait(EXIT_TIMEOUT_S)
            self.kill()
            code = self.process.returncode if self.process is not None else None
            message = f"the broker did not start (exit code {code}); it printed:\n{self.output}"
            name = f"broker {self.properties['node.id']}" if "node.id" in self.properties else "the broker"
            raise BrokerError(message, f"{name} did not start: {self._child.error_text()}")
        facts = self._child.facts
        self.ports = {each["listener"]: each["port"] for each in facts["endpoints"]}
        self.port = list(self.ports.values())[-1]
        self.metrics_url = facts["metrics"]
        return self

    def _command(self) -> list[str]:
        settings: dict[str, Property] = {
            "log.dirs": self.data_directory,
            **DEFAULT_PROPERTIES,
            **self.properties,
            "listeners": self.properties.get("listeners", f"PLAINTEXT://{self.host}:{self.port}"),
        }
        overrides = [f"--override={name}={property_text(value)}" for name, value in settings.items()]
        return odradek_command("broker", "--format=json", *overrides)

    def stop(self) -> None:
        """Stop the broker with SIGTERM and wait for it, as a service manager does."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """Kill the broker with SIGKILL, as a crash would."""
        self._end(signal.SIGKILL)

    def _end(self, number: signal.Signals) -> None:
        if not self._child.end(number, STOP_TIMEOUT_S):
            raise BrokerError(f"the broker did not stop on {number.name}; it printed:\n{self.output}")

    def restart(self) -> Self:
        """Stop the broker if it runs, and start it on the same port and data. Clients reconnect by themselves."""
        self.stop()
        return self.start()


@contextlib.contextmanager
def broker(properties: Mapping[str, Property] | None = None, /, **more: Property) -> Iterator[RunningBroker]:
    """A running broker: `with broker(num_partitions=3) as running:`.

    Properties have Kafka's names: in a mapping with dots, as keywords with underscores instead.
    """
    running = RunningBroker(named_properties(properties, more), is_fork=True)
    try:
        yield running.start()
    finally:
        running.close()
