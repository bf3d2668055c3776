"""Apache Kafka's own tests on Odradek: those that Apache Kafka passes in the same harness must pass, on one broker, and
on clusters where a test asks for several."""

from collections.abc import Set
from pathlib import Path

import pytest

from tests.conformance.classes import (
    CLASSES,
    CLUSTER_CLASSES,
    CLUSTER_KNOWN_FAILURES,
    CLUSTER_NOT_RUN,
    DECIDED_BY_TIME,
    KNOWN_FAILURES,
    NOT_RUN,
)
from tests.conformance.harness import reference, run_class, run_class_on_clusters

ROOT = Path(__file__).parents[2]


@pytest.mark.conformance
@pytest.mark.jvm
@pytest.mark.timeout(900)
@pytest.mark.parametrize("class_name", CLASSES, ids=lambda name: name.rpartition(".")[2])
def test_class_passes_as_on_apache_kafka(class_name: str, jvm: None, tmp_path: Path) -> None:
    known = {test for known_class, test in KNOWN_FAILURES if known_class == class_name}
    compare(reference()[class_name], run_class(class_name, tmp_path), known)


@pytest.mark.conformance
@pytest.mark.jvm
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("class_name", CLUSTER_CLASSES, ids=lambda name: name.rpartition(".")[2])
def test_class_passes_on_clusters_as_on_apache_kafka(class_name: str, jvm: None, tmp_path: Path) -> None:
    known = {test for known_class, test in CLUSTER_KNOWN_FAILURES if known_class == class_name}
    either = {test for known_class, test in DECIDED_BY_TIME if known_class == class_name}
    compare(cluster_reference()[class_name], run_class_on_clusters(class_name, tmp_path), known, either)


def compare(expected: set[str], outcomes: dict[str, str], known: set[str], either: Set[str] = frozenset()) -> None:
    """The known failures fail and nothing else does; those in `either` may pass."""
    failed = {test: outcomes.get(test, "was not run") for test in expected if outcomes.get(test, "was not run")}
    passed = len(expected) - len(failed)
    assert failed.keys() | either == known, f"{passed} of {len(expected)} passed: {failed}"


def cluster_reference() -> dict[str, set[str]]:
    return reference("cluster_reference.tsv")


def test_every_class_of_the_reference_is_run_or_has_a_reason() -> None:
    assert sorted([*CLASSES, *NOT_RUN]) == sorted(reference())
    assert sorted([*CLUSTER_CLASSES, *CLUSTER_NOT_RUN]) == sorted(cluster_reference())


def test_known_failures_are_tests_of_the_classes_that_run() -> None:
    for class_name, test in KNOWN_FAILURES:
        assert class_name in CLASSES
        assert test in reference()[class_name]
    for class_name, test in CLUSTER_KNOWN_FAILURES:
        assert class_name in CLUSTER_CLASSES
        assert test in cluster_reference()[class_name]


def test_the_documentation_states_how_many_tests_pass() -> None:
    total = sum(len(reference()[class_name]) for class_name in CLASSES)
    text = " ".join((ROOT / "docs" / "reference.md").read_text().split())
    assert f"{total - len(KNOWN_FAILURES)} of the {total} tests" in text
    clustered = sum(len(cluster_reference()[class_name]) for class_name in CLUSTER_CLASSES)
    assert f"{clustered - len(CLUSTER_KNOWN_FAILURES)} of the {clustered} tests of clusters" in text
