"""The tests of other clients, as their registries carry them, on one broker and on clusters (`make clients`)."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.client_suites import franz_go, kafka_go, kafka_python, librdkafka, sarama
from tests.client_suites.suite import FAILED, PASSED, run_suite

if TYPE_CHECKING:
    from tests.client_suites.suite import Report, Suite

SUITES = [kafka_python.SUITE, kafka_go.SUITE, franz_go.SUITE, librdkafka.SUITE, sarama.SUITE]
OUTPUT = Path(__file__).parents[2] / "build" / "clients"


@pytest.mark.clients
@pytest.mark.timeout(3600)
@pytest.mark.parametrize(
    ("suite", "brokers"),
    [pytest.param(suite, count, id=f"{suite.name}-{count}") for suite in SUITES for count in suite.brokers],
)
def test_suite_passes(suite: Suite, brokers: int, reports: list[Report]) -> None:
    directory = OUTPUT / f"{suite.name}-{brokers}"
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    report = run_suite(suite, brokers, directory)
    reports.append(report)
    failed = report.named(FAILED)
    assert not failed, "\n\n".join(f"{name}: {text}" for name, text in failed.items())
    assert report.count(PASSED) >= suite.fewest_passed, "the tests were not found, or not run"
