"""Several brokers under one process: started together, started again when they die, stopped one after another."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import sys
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from odradek.conventions.failures import PROGRAM, Failure, without_prefix
from odradek.host.logs import get_logger
from odradek.host.service_manager import READY, SOCKET_VARIABLE, STOPPING, notify_service_manager
from odradek.local.child_process import ChildProcess, odradek_command

if TYPE_CHECKING:
    from odradek.server.process_settings import ProcessSettings

log = get_logger(__name__)

FIRST_DELAY_S = 0.5
LONGEST_DELAY_S = 30.0
STABLE_AFTER_S = 60.0  # a broker that was ready this long is started again at once when it dies
STOP_TIMEOUT_S = 120.0  # for one broker, before it is killed


def write_log_line(line: str) -> None:
    """Writes a line to standard error in one call. With PYTHONUNBUFFERED, `print` makes a second system call for the
    line end, and lines of several brokers, each of which has its thread, would join."""
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


class BrokerProcess:
    """One broker. `report(process, has_ended)` is called by threads of this process. The log of the broker is copied to
    that of this process, each line with the broker's id."""

    def __init__(
        self, settings: ProcessSettings, arguments: Sequence[str], report: Callable[[BrokerProcess, bool], None], *,
        as_json: bool,
    ) -> None:  # fmt: skip
        self.settings = settings
        self.last_error = ""
        self._arguments = arguments
        self._report = report
        self._as_json = as_json
        self.child = ChildProcess(on_ready=self._take_ports, on_line=self._take_line, on_output_end=self._wait)

    @property
    def node_id(self) -> int:
        return self.settings.node_id

    def start(self) -> None:
        overrides = [f"--override={each}" for each in self.settings.overrides()]
        style = os.environ.get("ODRADEK_LOG_FORMAT", "json" if self._as_json else "text")
        self.child.start(
            odradek_command("broker", *self._arguments, *overrides, "--format=json"),
            {**os.environ, SOCKET_VARIABLE: "", "ODRADEK_LOG_FORMAT": style},  # the supervisor notifies
        )

    def end_text(self) -> str:
        """How the process ended: `SIGKILL`, or `exit code 1: …` with its error."""
        assert self.child.process is not None
        code = self.child.process.returncode
        assert code is not None
        if code < 0:
            return signal.Signals(-code).name
        return f"exit code {code}" + (f": {self.last_error}" if self.last_error else "")

    def _take_ports(self) -> None:
        """A broker that is started again has the same ports."""
        ports = {each["listener"]: each["port"] for each in self.child.facts["endpoints"]}
        self.settings = self.settings.with_ports(ports)
        self._report(self, False)

    def _wait(self) -> None:
        self.child.wait()
        self._report(self, True)

    def _take_line(self, line: str) -> None:
        if line.startswith(PROGRAM):
            self.last_error = without_prefix(line.strip())
        else:
            write_log_line(self._with_node_id(line))

    def _with_node_id(self, line: str) -> str:
        if line.startswith("{"):
            with contextlib.suppress(ValueError):
                return json.dumps({"node_id": self.node_id, **json.loads(line)})
        if self._as_json:  # a line of Python itself, such as a warning
            return json.dumps({"node_id": self.node_id, "level": "warning", "event": line})
        return f"[{self.node_id}] {line}"


class _Event(NamedTuple):
    """A signal, or a process that is ready or has ended."""

    signal: signal.Signals | None = None
    process: BrokerProcess | None = None
    has_ended: bool = False


class RestartDelays:
    """Doubles with each death of a broker that was not stable before. Pure: the caller has the clock."""

    def __init__(self) -> None:
        self._failures: dict[int, int] = {}
        self._ready_at: dict[int, float] = {}

    def is_ready(self, node_id: int, now: float) -> None:
        self._ready_at[node_id] = now

    def after_death(self, node_id: int, now: float) -> float:
        ready_at = self._ready_at.pop(node_id, None)
        if ready_at is not None and now - ready_at >= STABLE_AFTER_S:
            self._failures[node_id] = 0
        failures = self._failures.get(node_id, 0)
        self._failures[node_id] = failures + 1
        delay_s: float = min(FIRST_DELAY_S * 2 ** min(failures, 20), LONGEST_DELAY_S)
        return delay_s


class Supervisor:
    def __init__(self, settings: Sequence[ProcessSettings], arguments: Sequence[str], *, as_json: bool) -> None:
        self._as_json = as_json
        self._events: queue.SimpleQueue[_Event] = queue.SimpleQueue()
        self._delays = RestartDelays()
        self._restarts: dict[int, float] = {}  # when to start which broker again
        self._processes = {
            each.node_id: BrokerProcess(each, arguments, self._put, as_json=as_json) for each in settings
        }

    def _put(self, process: BrokerProcess, has_ended: bool) -> None:
        self._events.put(_Event(process=process, has_ended=has_ended))

    def run(self) -> None:
        """Until SIGTERM or Ctrl-C. Failure if a broker does not start."""
        self._check_directories()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda received, _: self._events.put(_Event(signal=signal.Signals(received))))
        for process in self._processes.values():
            process.start()
        try:
            if self._wait_until_ready():
                print(self._ready_text(), flush=True)
                notify_service_manager(READY)
                self._keep_running()
        finally:
            notify_service_manager(STOPPING)
            self._stop()
        log.info("stopped")

    def _check_directories(self) -> None:
        for process in self._processes.values():
            for path in process.settings.log_dirs:
                parent = os.path.dirname(path)
                if os.path.exists(os.path.join(parent, "meta.properties")):
                    raise Failure(
                        f"{parent} has the data of a single broker, and --processes keeps that of each broker in a "
                        f"subdirectory: stop the broker, and move its files to {path} if its node id is "
                        f"{process.node_id}, or set another log.dirs"
                    )

    def _wait_until_ready(self) -> bool:
        """False after a signal."""
        while not all(process.child.facts for process in self._processes.values()):
            event = self._events.get()
            if event.signal is not None:
                log.info("stopping", signal=event.signal.name)
                return False
            process = event.process
            assert process is not None
            if event.has_ended:
                reason = process.last_error or process.end_text()
                raise Failure(f"broker {process.node_id} did not start: {reason}")
            self._delays.is_ready(process.node_id, time.monotonic())
        return True

    def _keep_running(self) -> None:
        """Start brokers again that die, until a signal."""
        while True:
            now = time.monotonic()
            for node_id in [each for each, due_at in self._restarts.items() if due_at <= now]:
                del self._restarts[node_id]
                self._processes[node_id].start()
            timeout_s = min(self._restarts.values(), default=None)
            try:
                event = self._events.get(timeout=None if timeout_s is None else max(timeout_s - now, 0))
            except queue.Empty:
                continue
            if event.signal is not None:
                log.info("stopping", signal=event.signal.name)
                return
            self._follow(event)

    def _follow(self, event: _Event) -> None:
        process = event.process
        assert process is not None
        now = time.monotonic()
        if not event.has_ended:
            self._delays.is_ready(process.node_id, now)
            log.info("broker is ready", node_id=process.node_id, pid=process.child.pid)
            return
        delay_s = self._delays.after_death(process.node_id, now)
        self._restarts[process.node_id] = now + delay_s
        log.warning("broker ended", node_id=process.node_id, reason=process.end_text(), starts_again_in_s=delay_s)

    def _stop(self) -> None:
        """One after another, the last first, so that each hands over what it leads to those that remain."""
        for process in reversed(self._processes.values()):
            if not process.child.is_running:
                continue
            process.child.send(signal.SIGTERM)
            deadline = time.monotonic() + STOP_TIMEOUT_S
            while process.child.is_running:
                try:
                    event = self._events.get(timeout=max(deadline - time.monotonic(), 0))
                except queue.Empty:
                    log.warning("broker is killed: it did not stop in time", node_id=process.node_id)
                    process.child.send(signal.SIGKILL)
                    process.child.wait()
                    break
                if event.signal is not None:
                    self._stop_at_once(event.signal)

    def _stop_at_once(self, number: signal.Signals) -> None:
        """A second signal: every broker exits without a clean shutdown."""
        log.warning("stopping all brokers at once", signal=number.name)
        running = [process.child for process in self._processes.values() if process.child.is_running]
        for child in running:
            child.send(signal.SIGKILL)
        for child in running:
            child.wait()

    def _ready_text(self) -> str:
        brokers = [{**process.child.facts, "pid": process.child.pid} for process in self._processes.values()]
        if self._as_json:
            return json.dumps(
                {
                    "event": "ready",
                    "brokers": [{name: value for name, value in each.items() if name != "event"} for each in brokers],
                }
            )
        first, last = min(self._processes), max(self._processes)
        endpoints = [f"{each['host']}:{each['port']}" for broker in brokers for each in broker["endpoints"]]
        which = f"broker {first} is" if first == last else f"brokers {first} to {last} are"
        return f"odradek {which} ready on {', '.join(endpoints)}"
