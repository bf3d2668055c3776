"""The report of `--slow-files N`: the N test files that took the longest, set-up and tear-down included."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pytest


def slowest_files(reports: Iterable[pytest.TestReport], count: int) -> list[tuple[str, float, int]]:
    """File, seconds and number of tests, the slowest file first."""
    seconds: defaultdict[str, float] = defaultdict(float)
    tests: defaultdict[str, set[str]] = defaultdict(set)
    for report in reports:
        file = report.nodeid.partition("::")[0]
        seconds[file] += report.duration
        tests[file].add(report.nodeid)
    slowest = sorted(seconds, key=lambda file: -seconds[file])[:count]
    return [(file, seconds[file], len(tests[file])) for file in slowest]


def write_report(terminal: pytest.TerminalReporter, count: int) -> None:
    from _pytest.reports import TestReport

    reports = [each for group in terminal.stats.values() for each in group if isinstance(each, TestReport)]
    terminal.write_sep("=", f"slowest {count} files")
    for file, seconds, tests in slowest_files(reports, count):
        terminal.write_line(f"{seconds:7.1f} s  {tests:5} tests  {file}")
