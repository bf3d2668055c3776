"""Apache Kafka's own tests on Odradek: those that a single Apache Kafka passes in the same harness must pass."""

from pathlib import Path

import pytest

from tests.conformance.classes import CLASSES, KNOWN_FAILURES, NOT_RUN
from tests.conformance.harness import reference, run_class

ROOT = Path(__file__).parents[2]


@pytest.mark.conformance
@pytest.mark.jvm
@pytest.mark.timeout(900)
@pytest.mark.parametrize("class_name", CLASSES, ids=lambda name: name.rpartition(".")[2])
def test_class_passes_as_on_apache_kafka(class_name: str, jvm: None, tmp_path: Path) -> None:
    expected = reference()[class_name]
    outcomes = run_class(class_name, tmp_path)
    failed = {test: outcomes.get(test, "was not run") for test in expected if outcomes.get(test, "was not run")}
    passed = len(expected) - len(failed)
    known = {test for known_class, test in KNOWN_FAILURES if known_class == class_name}
    assert failed.keys() == known, f"{passed} of {len(expected)} passed: {failed}"


def test_every_class_of_the_reference_is_run_or_has_a_reason() -> None:
    assert sorted([*CLASSES, *NOT_RUN]) == sorted(reference())


def test_known_failures_are_tests_of_the_classes_that_run() -> None:
    for class_name, test in KNOWN_FAILURES:
        assert class_name in CLASSES
        assert test in reference()[class_name]


def test_the_documentation_states_how_many_tests_pass() -> None:
    total = sum(len(reference()[class_name]) for class_name in CLASSES)
    text = " ".join((ROOT / "docs" / "reference.md").read_text().split())
    assert f"{total - len(KNOWN_FAILURES)} of the {total} tests" in text
