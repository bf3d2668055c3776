"""The summary of `make clients`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.client_suites.suite import FAILED, PASSED, SKIPPED

if TYPE_CHECKING:
    from tests.client_suites.suite import Report

REPORTS = pytest.StashKey[list["Report"]]()


def pytest_configure(config: pytest.Config) -> None:
    config.stash[REPORTS] = []


@pytest.fixture
def reports(request: pytest.FixtureRequest) -> list[Report]:
    return request.config.stash[REPORTS]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    reports = config.stash.get(REPORTS, [])
    if not reports:
        return
    terminalreporter.section("suites of other clients")
    terminalreporter.line(f"{'suite':16}{'brokers':>8}{'passed':>8}{'failed':>8}{'skipped':>8}{'minutes':>9}")
    for each in reports:
        counts = "".join(f"{each.count(state):8}" for state in (PASSED, FAILED, SKIPPED))
        terminalreporter.line(f"{each.suite:16}{each.brokers:8}{counts}{each.minutes:9.1f}")
    for each in reports:
        for name, reason in each.named(SKIPPED).items():
            terminalreporter.line(f"skipped: {each.suite} on {each.brokers}: {name}: {reason}")
