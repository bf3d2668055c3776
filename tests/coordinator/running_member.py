"""A group's member in a process of its own, as a test sees it: what it is assigned, what it has read, how it ends."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

ROOT = Path(__file__).resolve().parents[2]
LIBRARIES = ("confluent", "kafka-python", "aiokafka")
PATIENCE_S = 30.0


class RunningMember:
    def __init__(self, library: str, servers: str, name: str, topics: Sequence[str], strategy: str = "range") -> None:
        self.assigned: set[tuple[str, int]] = set()
        self.read: list[int] = []
        command = [sys.executable, "-W", "ignore", "-m", "tests.coordinator.group_members"]
        self.process = subprocess.Popen(
            [*command, library, servers, name, strategy, *topics], cwd=ROOT, stdout=subprocess.PIPE, text=True
        )
        assert self.process.stdout is not None
        self._listener = threading.Thread(target=self._listen, args=(self.process.stdout,), daemon=True)
        self._listener.start()

    def _listen(self, stream: IO[str]) -> None:
        with stream:
            for line in stream:
                said = json.loads(line)
                self.read += [int(value) for value in said.get("read", ())]
                if "assigned" in said:
                    self.assigned = {(topic, partition) for topic, partition in said["assigned"]}

    def leave(self) -> None:
        self.process.terminate()
        assert self.process.wait(PATIENCE_S) == 0

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(PATIENCE_S)


def wait_until(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, f"not within {PATIENCE_S:.0f} s: {what}"
        time.sleep(0.02)  # a poll's pause
