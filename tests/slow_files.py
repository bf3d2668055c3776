"""The report of `--slow-files N`: the N test files that took the most processor time, set-up and tear-down included."""

from __future__ import annotations

import contextlib
import os
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable

_PROCESSOR_SECONDS = "processor_seconds"
TICKS_PER_S = os.sysconf("SC_CLK_TCK")
SHORT_PHASE_S = 0.02  # looking through all processes takes some milliseconds, which a short phase is not worth


@dataclass
class FileTimes:
    """The tests of a file, with the time on the clock and on the processors that they took."""

    file: str
    seconds: float = 0.0
    processor_seconds: float = 0.0
    tests: set[str] = field(default_factory=set)


class ProcessorTimes:
    """A plugin that adds to the report of each phase the processor time of this process and of all that it started."""

    def __init__(self) -> None:
        self._own_s = self._children_s = self._running_s = 0.0

    def pytest_collection_finish(self) -> None:
        self._spent_seconds(True)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        report.user_properties.append((_PROCESSOR_SECONDS, self._spent_seconds(report.duration >= SHORT_PHASE_S)))
        return report

    def _spent_seconds(self, is_long: bool) -> float:
        """The time since the last call; that of running processes counts after a long phase, or when one has ended."""
        times = os.times()
        own_s, children_s = times.user + times.system, times.children_user + times.children_system
        spent_s = own_s - self._own_s + children_s - self._children_s
        if is_long or children_s > self._children_s:
            running_s = descendants_seconds()
            spent_s += running_s - self._running_s
            self._running_s = running_s
        self._own_s, self._children_s = own_s, children_s
        return spent_s


def descendants_seconds() -> float:
    """The time of the processes that run and descend from this one, with that of their children that ended."""
    own = os.getpid()
    parents: dict[int, int] = {}
    seconds: dict[int, float] = {}
    for process in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it ended
            number = int(process.parent.name)
            fields = process.read_text(errors="replace").rpartition(")")[2].split()
            parents[number] = int(fields[1])
            seconds[number] = sum(map(int, fields[11:15])) / TICKS_PER_S
    return sum(spent for number, spent in seconds.items() if _descends(number, own, parents))


def _descends(process: int, ancestor: int, parents: dict[int, int]) -> bool:
    while (process := parents.get(process, 0)) > 0:
        if process == ancestor:
            return True
    return False


def dearest_files(reports: Iterable[pytest.TestReport]) -> list[FileTimes]:
    """The file with the most processor time first."""
    files: defaultdict[str, FileTimes] = defaultdict(lambda: FileTimes(""))
    for report in reports:
        name = report.nodeid.partition("::")[0]
        file = files[name]
        file.file = name
        file.seconds += report.duration
        file.processor_seconds += sum(
            float(str(value)) for key, value in report.user_properties if key == _PROCESSOR_SECONDS
        )
        file.tests.add(report.nodeid)
    return sorted(files.values(), key=lambda file: -file.processor_seconds)


def write_report(terminal: pytest.TerminalReporter, count: int) -> None:
    """Rows of the table in docs/testing.md."""
    from _pytest.reports import TestReport

    reports = [each for group in terminal.stats.values() for each in group if isinstance(each, TestReport)]
    terminal.write_sep("=", f"{count} files with the most processor time")
    terminal.write_line("| file | tests | processor seconds | seconds |")
    terminal.write_line("|---|---:|---:|---:|")
    files = dearest_files(reports)
    for file in files[:count]:
        terminal.write_line(
            f"| `{file.file}` | {len(file.tests)} | {file.processor_seconds:.0f} | {file.seconds:.0f} |"
        )
    terminal.write_line(
        f"all {len(files)} files: {sum(file.processor_seconds for file in files):.0f} processor seconds"
    )
