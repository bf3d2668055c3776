"""A histogram counts each value in the first bucket whose bound it does not exceed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.metrics.histogram import LATENCY_BOUNDS, Histogram
from odradek.metrics.registry import points_of
from odradek.metrics.samples import Definition, Kind, Sample

FINITE = st.floats(0, 1e6, allow_nan=False)
BOUNDS = st.lists(FINITE, min_size=1, max_size=12, unique=True).map(sorted)


@given(bounds=BOUNDS, values=st.lists(FINITE, max_size=50))
def test_cumulative_buckets_count_the_values_up_to_their_bounds(bounds: list[float], values: list[float]) -> None:
    histogram = Histogram(bounds)
    for value in values + bounds:
        histogram.observe(value)
    observed = values + bounds
    points = points_of(Sample("h", ("x",), histogram.value()), Definition("h", Kind.HISTOGRAM, ("l",), "a histogram"))
    buckets = [point for point in points if point.suffix == "_bucket"]
    assert [point.value for point in buckets] == [
        *(sum(value <= bound for value in observed) for bound in bounds),
        len(observed),
    ]
    assert [dict(point.labels)["le"] for point in buckets][-1] == "+Inf"
    rest = {point.suffix: point for point in points if point.suffix != "_bucket"}
    assert rest["_count"].value == len(observed)
    assert rest["_sum"].value == pytest.approx(sum(observed))
    assert all(dict(point.labels)["l"] == "x" for point in points)


@pytest.mark.parametrize("bounds", [(), (1.0, 1.0), (2.0, 1.0)])
def test_bounds_must_rise(bounds: tuple[float, ...]) -> None:
    with pytest.raises(ValueError, match="must rise"):
        Histogram(bounds)


def test_the_bounds_of_latencies_rise() -> None:
    assert list(LATENCY_BOUNDS) == sorted(set(LATENCY_BOUNDS))
