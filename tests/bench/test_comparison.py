"""Pairs of rounds, ratios, spread and verdicts."""

import math

import pytest

from bench.comparison import (
    DERIVED,
    Ratios,
    Verdict,
    compare,
    confirming_rounds,
    ignored_extremes,
    judge,
    pairs,
    ratio_of,
    ratios_of,
)
from bench.metrics import METRICS
from bench.results import AFTER, BEFORE, Experiment


def produce(before: list[float], after: list[float], metric: str = "records_per_s") -> Experiment:
    experiment = Experiment("produce-100b", "produce 100 B", [metric])
    for figure in before:
        experiment.add(BEFORE, {metric: figure})
    for figure in after:
        experiment.add(AFTER, {metric: figure})
    return experiment


def test_figures_of_the_same_round_are_paired() -> None:
    assert pairs(produce([1.0, 2.0, 3.0], [4.0, 5.0]), "records_per_s") == [(1.0, 4.0), (2.0, 5.0)]


def test_round_without_the_metric_on_one_side_has_no_pair() -> None:
    experiment = produce([1.0], [2.0])
    experiment.add(BEFORE, {"p50_ms": 7.0})
    experiment.add(AFTER, {"records_per_s": 9.0})
    assert pairs(experiment, "records_per_s") == [(1.0, 2.0)]


@pytest.mark.parametrize(
    ("before", "after", "ratio"),
    [(2.0, 3.0, 1.5), (2.0, 0.0, 0.0), (0.0, 0.0, 1.0), (0.0, 3.0, math.inf), (-0.1, -0.2, 1.0), (0.5, -0.2, 0.0)],
)
def test_ratio_is_after_by_before(before: float, after: float, ratio: float) -> None:
    assert ratio_of(before, after) == ratio


def test_ratio_is_the_median_of_the_rounds_not_the_ratio_of_the_medians() -> None:
    ratios = ratios_of([(1.0, 2.0), (10.0, 10.0), (100.0, 50.0)])
    assert ratios == Ratios(median=1.0, low=0.5, high=2.0)
    assert ratios_of([]) is None


@pytest.mark.parametrize(("rounds", "ignored"), [(1, 0), (2, 0), (6, 0), (11, 0), (12, 1), (14, 1), (15, 2), (20, 3)])
def test_spread_of_many_rounds_leaves_out_extremes(rounds: int, ignored: int) -> None:
    assert ignored_extremes(rounds) == ignored


def test_one_disturbed_round_of_twelve_does_not_widen_the_spread() -> None:
    assert ratios_of([(1.0, 1.0)] * 11 + [(1.0, 9.0)]) == Ratios(median=1.0, low=1.0, high=1.0)


@pytest.mark.parametrize(
    ("median", "low", "high", "verdict"),
    [
        (1.00, 0.99, 1.01, Verdict.NOT_WORSE),
        (0.50, 0.40, 0.60, Verdict.NOT_WORSE),
        (1.03, 1.02, 1.04, Verdict.NOT_WORSE),
        (1.031, 1.02, 1.04, Verdict.WORSE),
        (1.20, 1.10, 1.30, Verdict.WORSE),
        (1.20, 1.00, 1.30, Verdict.WITHIN_NOISE),
        (1.20, 0.90, 2.00, Verdict.WITHIN_NOISE),
    ],
)
def test_cost_is_worse_beyond_the_tolerance_if_the_whole_spread_is(
    median: float, low: float, high: float, verdict: Verdict
) -> None:
    assert judge(Ratios(median, low, high), 0.03, is_higher_better=False) is verdict
    inverse = Ratios(1 / median, 1 / high, 1 / low)
    assert judge(inverse, 0.03, is_higher_better=True) is verdict


def test_rate_of_nothing_is_worse_and_a_missing_figure_is_not_judged() -> None:
    assert judge(Ratios(0.0, 0.0, 0.0), 0.03, is_higher_better=True) is Verdict.WORSE
    assert judge(None, 0.03, is_higher_better=True) is Verdict.NOT_MEASURED


@pytest.mark.parametrize(
    ("metric", "after", "text"),
    [
        ("records_per_s", 90.0, "slower"),
        ("records_per_s", 110.0, "not slower"),
        ("p99_ms", 110.0, "slower"),
        ("broker_cpu_s_per_gb", 110.0, "more"),
        ("broker_cpu_us_per_commit", 90.0, "not more"),
        ("connections", 90.0, "fewer"),
    ],
)
def test_verdict_is_in_the_words_of_the_metric(metric: str, after: float, text: str) -> None:
    (row,) = compare(produce([100.0] * 4, [after] * 4, metric))
    assert row.verdict_text == text


def test_row_holds_medians_ratio_and_spread() -> None:
    (row,) = compare(produce([1000.0, 2000.0, 3000.0], [900.0, 1900.0, 3300.0]))
    assert row.cells == (
        "produce 100 B",
        "records/s",
        "2,000",
        "1,900",
        "0.950",
        "0.900–1.100",
        "within noise",
    )


def test_tolerance_decides() -> None:
    experiment = produce([100.0] * 4, [95.0] * 4)
    assert [row.verdict for row in compare(experiment, 0.03)] == [Verdict.WORSE]
    assert [row.verdict for row in compare(experiment, 0.10)] == [Verdict.NOT_WORSE]


def test_metric_that_one_version_lacks_is_not_measured() -> None:
    (row,) = compare(produce([1.0], []))
    assert row.cells[2:] == ("–", "–", "–", "–", "not measured")


def test_derived_metrics_are_left_out() -> None:
    experiment = Experiment("produce-100b", "produce 100 B", ["mb_per_s", "records_per_s"])
    (row,) = compare(experiment)
    assert (row.title, row.metric.key) == ("produce 100 B", "records_per_s")
    assert set(METRICS) > DERIVED


@pytest.mark.parametrize(
    ("rounds", "after", "further"),
    [
        (2, 90.0, [3, 4, 5, 6, 7, 8]),
        (4, 90.0, [5, 6, 7, 8]),
        (6, 90.0, [7, 8, 9, 10, 11, 12]),
        (6, 99.0, []),
    ],
)
def test_verdict_of_worse_must_be_confirmed_by_further_rounds(rounds: int, after: float, further: list[int]) -> None:
    experiment = produce([100.0] * rounds, [after] * rounds)
    assert list(confirming_rounds(experiment, 0.03)) == further


def test_noise_needs_no_confirmation() -> None:
    assert not confirming_rounds(produce([100.0] * 3, [50.0, 50.0, 101.0]), 0.03)
