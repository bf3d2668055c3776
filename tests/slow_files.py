"""The report of `--slow-files N`: processor time by file, folder and kind of process, with everything that tests start.

The process that forks the workers adopts the processes that outlive their parents and waits for them, so that nothing
that a test starts leaves its family and the total is exact. Which file used it is known to a fraction of a second.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import threading
import time
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

TICKS_PER_S = os.sysconf("SC_CLK_TCK")
SET_CHILD_SUBREAPER = 36  # of prctl(2)
PAUSE_S = 0.2  # reading /proc takes some milliseconds
SHORTEST_PAUSE_S = 0.05
UNNAMED = "(collection, reports, ends of workers)"
SHORT = "processes that end at once"
KINDS = {  # by a part of the command line
    "org.apache.zookeeper": "ZooKeeper",
    "org.apache.spark": "Spark's JVMs",
    "java": "other JVMs",
    "pyspark": "Spark's Python",
    "bin/pytest": "pytest's workers",
    "odradek.server.main": "brokers",  # forks of a process that has imported it
    "odradek broker": "brokers",
    "odradek": "commands",
}


@dataclass
class Process:
    """`worker` is the child of this process that it descends from."""

    started: int
    first_parent: int
    worker: int
    kind: str = "other processes"
    own_s: float = 0.0
    all_s: float = 0.0  # with its children that have ended


def processes() -> list[tuple[int, int, int, bool, float, float]]:
    """Number, start, parent, whether it has ended, own time, time of ended children; parents before their children."""
    found = []
    for directory in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it ended
            fields = (directory / "stat").read_text(errors="replace").rpartition(")")[2].split()
            own_s, children_s = (sum(map(int, fields[at : at + 2])) / TICKS_PER_S for at in (11, 13))
            found.append((int(fields[19]), int(directory.name), int(fields[1]), fields[0] == "Z", own_s, children_s))
    return sorted(found)


def descendants_seconds() -> float:
    """The time of the processes that run and descend from this one, with that of their children that ended."""
    family, seconds = {os.getpid()}, 0.0
    for _, number, parent, _, own_s, children_s in processes():
        if parent in family:
            family.add(number)
            seconds += own_s + children_s
    return seconds


class ProcessorTimes:
    """A plugin of the process that collects the tests. Workers have it too, and do not use it."""

    def __init__(self) -> None:
        ctypes.CDLL(None).prctl(SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        self._own = os.getpid()
        self._alive: dict[int, Process] = {}
        self._ended_s: defaultdict[int, float] = defaultdict(float)  # adopted processes, by worker
        self._used_s: defaultdict[int, float] = defaultdict(float)  # by worker; this process: everything
        self._charged_s: defaultdict[int, float] = defaultdict(float)  # by worker
        self._sampled_at = 0.0
        self._lock = threading.Lock()
        self.seconds_of_files: defaultdict[str, float] = defaultdict(float)
        self.seconds_of_kinds: defaultdict[str, float] = defaultdict(float)
        threading.Thread(target=self._watch, daemon=True).start()

    def pytest_collection_finish(self) -> None:
        self._charge(UNNAMED, self._own)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "teardown":
            self._charge(report.nodeid.partition("::")[0], getattr(report, "worker", self._own))

    def finish(self) -> None:
        with self._lock:
            self._sample()
            total_s = self._used_s[self._own]
            self.seconds_of_files[UNNAMED] += total_s - sum(self.seconds_of_files.values())
            self.seconds_of_kinds[SHORT] += total_s - sum(self.seconds_of_kinds.values())

    def _watch(self) -> None:
        while True:
            with self._lock:
                self._sample()
            time.sleep(PAUSE_S)  # a poll's pause

    def _charge(self, file: str, worker: int) -> None:
        """What a worker and its descendants have used since the last call is what this file used."""
        if os.getpid() != self._own:
            return  # in a worker, where a thread that does not exist may hold the lock
        with self._lock:
            if time.monotonic() - self._sampled_at > SHORTEST_PAUSE_S:
                self._sample()
            self.seconds_of_files[file] += self._used_s[worker] - self._charged_s[worker]
            self._charged_s[worker] = self._used_s[worker]

    def _sample(self) -> None:
        alive: dict[int, Process] = {}
        for started, number, parent, has_ended, own_s, children_s in processes():
            if number != self._own and parent not in alive:
                continue
            process = self._alive.get(number)
            if process is None or process.started != started:
                worker = number if parent not in alive or parent == self._own else alive[parent].worker
                process = Process(started, parent, worker)
            if own_s > process.own_s:
                process.kind = "pytest" if number == self._own else kind_of(number) or process.kind
                self.seconds_of_kinds[process.kind] += own_s - process.own_s
            process.own_s, process.all_s = own_s, own_s + children_s
            alive[number] = process
            if has_ended and parent == self._own != process.first_parent:  # adopted; other code waits for our children
                os.waitpid(number, 0)
                del alive[number]
                self._ended_s[process.worker] += process.all_s
                alive[self._own].all_s += process.all_s  # as the kernel does
        self._alive = alive
        self._used_s = self._ended_s.copy()
        for process in alive.values():
            self._used_s[process.worker] += process.all_s
        self._used_s[self._own] = sum(each.all_s for each in alive.values())
        self._sampled_at = time.monotonic()


def kind_of(number: int) -> str | None:
    """None for one that has ended."""
    with contextlib.suppress(OSError):
        command = Path(f"/proc/{number}/cmdline").read_text(errors="replace").replace("\0", " ")
        return next((kind for part, kind in KINDS.items() if part in command), "other processes") if command else None
    return None


def write_report(terminal: pytest.TerminalReporter, times: ProcessorTimes, count: int) -> None:
    times.finish()
    folders: defaultdict[str, float] = defaultdict(float)
    for file, seconds in times.seconds_of_files.items():
        folders["/".join(file.split("/")[:2])] += seconds
    tables = {"file": times.seconds_of_files, "folder": folders, "kind of process": times.seconds_of_kinds}
    for title, table in tables.items():
        terminal.write_sep("=", f"processor seconds by {title}")
        rows = sorted(table.items(), key=lambda row: -row[1])
        for name, seconds in rows[: count if title == "file" else None]:
            terminal.write_line(f"| {name} | {seconds:.1f} |")
    terminal.write_line(f"{sum(folders.values()):.0f} processor seconds")
