"""Whether results meet the targets."""

import pytest

from bench.metrics import METRICS
from bench.results import KAFKA, ODRADEK, Experiment
from bench.targets import TARGETS, target_of
from bench.workloads import NAMES, OTHERS, TRANSACTIONS, WORKLOADS


def experiment(name: str, metric: str, ours: float, theirs: float | None = None) -> Experiment:
    made = Experiment(name, name, [metric])
    made.add(ODRADEK, {metric: ours})
    if theirs is not None:
        made.add(KAFKA, {metric: theirs})
    return made


@pytest.mark.parametrize(("ours", "met"), [(1_200, True), (1_196, True), (1_194, False)])
def test_rate_must_be_at_least_the_multiple_of_kafkas_as_printed(ours: float, met: bool) -> None:
    target = target_of("produce-100b", "records_per_s")
    assert target is not None
    assert target.is_met(experiment("produce-100b", "records_per_s", ours, 1_000)) is met


@pytest.mark.parametrize(("ours", "met"), [(1.0, True), (2.0, True), (2.1, False)])
def test_cpu_must_be_at_most_the_part_of_kafkas(ours: float, met: bool) -> None:
    target = target_of("produce-100b-16kb", "broker_cpu_s_per_gb")
    assert target is not None
    assert target.is_met(experiment("produce-100b-16kb", "broker_cpu_s_per_gb", ours, 4.0)) is met


@pytest.mark.parametrize(("ours", "met"), [(79.9, True), (80.0, True), (80.1, False)])
def test_absolute_target_needs_no_kafka(ours: float, met: bool) -> None:
    target = target_of("memory", "memory_mb")
    assert target is not None
    assert target.is_met(experiment("memory", "memory_mb", ours)) is met


def test_relative_target_is_not_judged_without_kafka() -> None:
    target = target_of("latency", "p99_ms")
    assert target is not None
    assert target.is_met(experiment("latency", "p99_ms", 0.5)) is None


def test_every_target_has_a_metric_of_its_experiment() -> None:
    measured = {workload.name: workload.metrics for workload in WORKLOADS}
    measured |= {name: metrics for name, (_, metrics) in OTHERS.items()}
    assert set(measured) == set(NAMES)
    for target in TARGETS:
        assert target.metric in measured[target.experiment]
        assert target.metric in METRICS


def test_a_scaled_workload_is_never_empty() -> None:
    for workload in WORKLOADS:
        smallest = workload.scaled(1e-9)
        assert smallest.records > 0
        assert smallest.seconds > 0
        assert workload.mode == "latency" or workload.scaled(1) == workload.scaled(1.0)


def test_transactions_have_kafkas_rate_and_delays() -> None:
    bounded = [
        (target.experiment, target.metric)
        for target in TARGETS
        if target.experiment in TRANSACTIONS and target.relative
    ]
    rates = dict.fromkeys(TRANSACTIONS, "records_per_s") | {"transactions-open": "transactions_per_s"}
    assert bounded == [(name, metric) for name in TRANSACTIONS for metric in (rates[name], "p50_ms", "p99_ms")]
    assert all(target_of(name, metric).bound == 1.0 for name, metric in bounded)  # type: ignore[union-attr]  # both exist


def test_a_scaled_workload_has_enough_producers_and_no_more_than_before() -> None:
    open_transactions = next(workload for workload in WORKLOADS if workload.mode == "open")
    assert [open_transactions.scaled(scale).producers for scale in (0.001, 0.5, 1, 2)] == [32, 500, 1_000, 1_000]


@pytest.mark.parametrize(
    ("metric", "ours", "met"),
    [
        ("commits_per_s", 30_000, True),
        ("commits_per_s", 29_000, False),
        ("broker_cpu_us_per_commit", 30_000, True),
        ("broker_cpu_us_per_commit", 31_000, False),
    ],
)
def test_commits_reach_kafkas_rate_at_no_more_cpu(metric: str, ours: float, met: bool) -> None:
    target = target_of("commits", metric)
    assert target is not None
    assert target.is_met(experiment("commits", metric, ours, 30_000)) is met
