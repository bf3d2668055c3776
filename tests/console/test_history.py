"""Rings of samples and series keep an hour, and no more than their size."""

from __future__ import annotations

from odradek.console.models import BUCKET_S, Sample, Samples, Series


def test_samples_of_an_hour_are_kept() -> None:
    samples = Samples(interval_s=2)
    for number in range(5_000):
        samples.add(Sample(number * 2.0, {"records": float(number)}))
    assert len(samples) == 1_800
    assert samples.count == 5_000
    assert len(samples.since(0)) == 1_800


def test_a_reader_gets_what_it_has_not_seen() -> None:
    samples = Samples(interval_s=1)
    for number in range(10):
        samples.add(Sample(float(number), {}))
    assert [sample.time_s for sample in samples.since(7)] == [7.0, 8.0, 9.0]
    assert samples.since(10) == []


def test_a_series_has_the_means_of_buckets() -> None:
    series = Series(names=3)
    for time_s, value in ((0.0, 2.0), (4.0, 4.0), (2 * BUCKET_S, 9.0)):
        series.add("orders", time_s, value)
    assert series.points("orders", 2 * BUCKET_S, points=4) == [None, 3.0, None, 9.0]
    assert series.points("unknown", 0.0) == []


def test_series_beyond_the_limit_replace_the_one_that_changed_least_recently() -> None:
    series = Series(names=2, points=5)
    for name in ("a", "b", "a", "c"):
        series.add(name, 0.0, 1.0)
    assert sorted(series) == ["a", "c"]
    for bucket in range(100):
        series.add("a", bucket * BUCKET_S, 1.0)
    assert sum(value is not None for value in series.points("a", 99 * BUCKET_S, points=100)) == 5


def test_a_clock_that_was_set_back_begins_another_history() -> None:
    samples = Samples(interval_s=2)
    for time_s in (10_000.0, 10_002.0, 10_001.9, 6_400.0, 6_402.0):
        samples.add(Sample(time_s, {}))
    assert [sample.time_s for sample in samples.since(0)] == [6_400.0, 6_402.0]
    assert [sample.time_s for sample in samples.since(4)] == [6_402.0]
