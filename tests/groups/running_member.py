"""A group's member in a process of its own, as a test sees it: what it holds, has processed and committed, what was
refused it, and how it is ended: asked to leave, killed, or stopped and continued.
"""

from __future__ import annotations

import collections
import json
import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from tests.clients.go_build import go_program
from tests.jvm.jars import java_command
from tests.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.groups.members.member_settings import MemberSettings

ROOT = Path(__file__).resolve().parents[2]
PATIENCE_S = 90.0  # not how long it takes, but how long a busy machine may need

Partition = tuple[str, int]


def _python(module: str) -> Callable[[], list[str]]:
    return lambda: [sys.executable, "-W", "ignore", "-m", f"tests.groups.members.{module}"]


COMMANDS: dict[str, Callable[[], list[str]]] = {
    "aiokafka": _python("aiokafka_member"),
    "confluent": _python("confluent_member"),
    "franz-go": lambda: [str(go_program(ROOT / "tests" / "groups" / "go", "franz-go-member"))],
    "java": lambda: java_command("odradek.GroupMember", heap="128m"),
    "kafka-python": _python("kafka_python_member"),
}


@dataclass(frozen=True, slots=True)
class Run:
    """Records of one partition, one after another, that a member processed at once."""

    topic: str
    partition: int
    first_offset: int
    end_offset: int


@dataclass(slots=True)
class Reports:
    """All that a member has reported; written by one thread, read by that of the test."""

    held: set[Partition] = field(default_factory=set)
    runs: list[Run] = field(default_factory=list)
    committed: dict[Partition, int] = field(default_factory=dict)
    lines: list[tuple[float, dict[str, Any]]] = field(
        default_factory=list
    )  # all of it, and when (monotonic) it was heard
    refused: list[str] = field(default_factory=list)
    rebalances: int = 0
    has_started: bool = False
    has_left: bool = False

    def hear(self, line: dict[str, Any]) -> None:
        self.lines.append((time.monotonic(), line))
        partitions = {(topic, partition) for topic, partition in line.get("partitions", ())}
        match line["event"]:
            case "assigned":
                self.held = self.held | partitions
                self.rebalances += 1
            case "revoked" | "lost":
                self.held = self.held - partitions
            case "processed":
                self.runs += [Run(*run) for run in line["runs"]]
            case "committed":
                self.committed.update({(topic, partition): offset for topic, partition, offset in line["offsets"]})
            case "refused":
                self.refused.append(line["error"])
            case "started":
                self.has_started = True
            case "left":
                self.has_left = True


class RunningMember:
    def __init__(self, library: str, settings: MemberSettings) -> None:
        self.library = library
        self.name = settings.name
        self.reports = Reports()
        self.is_stopped = False
        self._errors: collections.deque[str] = collections.deque(maxlen=50)
        self.process = subprocess.Popen(
            [*COMMANDS[library](), settings.to_json()],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": f"{ROOT / 'src'}"},
            stdin=subprocess.PIPE,  # held by us: it ends when we do
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
        )
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        self._listeners = [
            threading.Thread(target=self._listen, args=(self.process.stdout,), daemon=True),
            threading.Thread(target=self._keep_errors, args=(self.process.stderr,), daemon=True),
        ]
        for listener in self._listeners:
            listener.start()

    def __repr__(self) -> str:
        return f"{self.name} ({self.library})"

    def _listen(self, stream: IO[str]) -> None:
        with stream:
            for line in stream:
                if line.endswith("\n"):  # the last line of a killed member may be cut, and is then ignored
                    self.reports.hear(json.loads(line))

    def _keep_errors(self, stream: IO[str]) -> None:
        with stream:
            self._errors.extend(stream)

    @property
    def errors(self) -> str:
        """The last that it wrote to standard error."""
        return "".join(self._errors)

    @property
    def held(self) -> set[Partition]:
        return self.reports.held

    @property
    def is_alive(self) -> bool:
        return self.process.poll() is None

    def leave(self) -> None:
        """Ask it to leave the group; it must end well."""
        eventually(lambda: self.reports.has_started or not self.is_alive, f"{self} started")
        self.process.terminate()
        status = self._end()
        assert (status, self.reports.has_left) == (0, True), f"{self} ended with {status}: {self.errors}"

    def kill(self) -> None:
        self.process.kill()
        self._end()

    def _end(self) -> int:
        """Waits for the end of the process and for all of its reports."""
        status = self.process.wait(PATIENCE_S)
        for listener in self._listeners:
            listener.join(PATIENCE_S)
        if self.process.stdin is not None:
            self.process.stdin.close()
        return status

    def stop(self) -> None:
        """Freeze it, as a long pause of a machine or a garbage collector does."""
        self.process.send_signal(signal.SIGSTOP)
        self.is_stopped = True

    def go_on(self) -> None:
        self.process.send_signal(signal.SIGCONT)
        self.is_stopped = False
