"""The report of `--slow-files N`: the N test files that took the longest, set-up and tear-down included."""

from __future__ import annotations

import os
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable

_PROCESSOR_SECONDS = "processor_seconds"


@dataclass
class FileTimes:
    """The tests of a file, with the time on the clock and on the processors that they took."""

    file: str
    seconds: float = 0.0
    processor_seconds: float = 0.0
    tests: set[str] = field(default_factory=set)


class ProcessorTimes:
    """A plugin that adds to the report of each phase the processor time of this process and of its ended children."""

    def __init__(self) -> None:
        self._measured_s = _processor_seconds()

    def pytest_runtest_logstart(self) -> None:
        self._measured_s = _processor_seconds()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        now_s = _processor_seconds()
        report.user_properties.append((_PROCESSOR_SECONDS, now_s - self._measured_s))
        self._measured_s = now_s
        return report


def _processor_seconds() -> float:
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def slowest_files(reports: Iterable[pytest.TestReport], count: int) -> list[FileTimes]:
    """The slowest file first."""
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
    return sorted(files.values(), key=lambda file: -file.seconds)[:count]


def write_report(terminal: pytest.TerminalReporter, count: int) -> None:
    """Rows of the table in docs/testing.md."""
    from _pytest.reports import TestReport

    reports = [each for group in terminal.stats.values() for each in group if isinstance(each, TestReport)]
    terminal.write_sep("=", f"slowest {count} files")
    terminal.write_line("| file | tests | seconds | processor seconds |")
    terminal.write_line("|---|---:|---:|---:|")
    for file in slowest_files(reports, count):
        terminal.write_line(
            f"| `{file.file}` | {len(file.tests)} | {file.seconds:.0f} | {file.processor_seconds:.0f} |"
        )
