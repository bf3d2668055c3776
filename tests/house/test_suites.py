"""Suites of tests: what `--suite` selects."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from _pytest.assertion.rewrite import AssertionRewritingHook

from tests.suites import SUITES, chosen_suites, refuse_apache_kafka, start_order, suite_of

ROOT = Path(__file__).resolve().parents[2]
ON_BOTH_BROKERS = "tests/clients/test_topic_settings.py"


def fake_item(nodeid: str, *fixtures: str, **markers: tuple[Any, ...]) -> Any:
    def marker(name: str) -> Any:
        return SimpleNamespace(args=markers[name], kwargs={}) if name in markers else None

    return SimpleNamespace(nodeid=nodeid, name=nodeid, fixturenames=fixtures, get_closest_marker=marker)


def collected(*options: str) -> list[str]:
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:randomly", *options, ON_BOTH_BROKERS]
    listing = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return [line.rpartition("[")[2].rstrip("]") for line in listing.stdout.splitlines() if "::" in line]


def test_apache_kafka_is_used_in_the_oracle_suite_only() -> None:
    assert collected() == ["odradek"]
    assert collected("--suite", "oracle") == ["apache-kafka"]
    assert collected("--suite", "test,oracle") == ["apache-kafka", "odradek"]
    assert collected("--suite", "soak") == []


def test_one_variant_of_a_test_stays_in_every_run() -> None:
    closest = {"more": SimpleNamespace(kwargs={"but": "inner"})}.get
    variants: list[Any] = [SimpleNamespace(name=f"a[{each}]", get_closest_marker=closest) for each in ("inner", "full")]
    assert [suite_of(each) for each in variants] == ["test", "more"]


def test_a_test_of_another_suite_may_not_start_apache_kafka() -> None:
    allowed = [fake_item("tests/a.py::one", "apache_kafka", oracle=()), fake_item("tests/a.py::two", "tmp_path")]
    refuse_apache_kafka(allowed)
    with pytest.raises(pytest.UsageError, match="::three needs Apache Kafka: give it the marker oracle"):
        refuse_apache_kafka([*allowed, fake_item("tests/a.py::three", "apache_kafka")])
    with pytest.raises(pytest.UsageError, match="::four needs Apache Kafka"):
        refuse_apache_kafka([*allowed, fake_item("tests/a.py::four", "apache_kafka", more=())])


def test_every_suite_has_a_command_and_continuous_integration_runs_what_every_change_needs() -> None:
    makefile = (ROOT / "Makefile").read_text()
    assert [name for name in SUITES if not re.search(rf"^{name}: ", makefile, re.MULTILINE)] == []
    assert re.findall("^make .*", (ROOT / ".ci" / "run").read_text(), re.MULTILINE) == ["make test"]


def test_unknown_suite_is_a_usage_error() -> None:
    with pytest.raises(pytest.UsageError, match="unknown suite nightly; choose from test, oracle, conformance, soak"):
        chosen_suites("test,nightly")


def test_longest_tests_start_first() -> None:
    short, long = fake_item("short"), fake_item("long", timeout=(300,))
    spark = fake_item("spark", spark=())
    assert sorted([short, long, spark], key=start_order) == [spark, long, short]


def test_modules_of_the_package_are_not_rewritten_and_those_of_tests_are(pytestconfig: pytest.Config) -> None:
    """Of the package, those that are imported after the start: a conftest that is named to pytest comes before it."""
    hook = pytestconfig.pluginmanager.rewrite_hook
    assert isinstance(hook, AssertionRewritingHook)
    package = import_module("odradek.log").__path__
    assert hook.find_spec("odradek.log.segment", list(package)) is None
    own = sys.modules[__name__].__spec__
    assert own is not None
    assert isinstance(own.loader, AssertionRewritingHook)
