"""Medians, extremes and ratios."""

import pytest

from bench.summary import ratio, spread


def test_median_stands_between_the_extremes() -> None:
    figures = spread([5.0, 1.0, 3.0])
    assert (figures.median, figures.minimum, figures.maximum, figures.count) == (3.0, 1.0, 5.0, 3)


def test_median_of_an_even_number_of_runs_is_between_the_middle_two() -> None:
    assert spread([4.0, 1.0, 2.0, 8.0]).median == 3.0


def test_no_run_has_no_median() -> None:
    with pytest.raises(ValueError, match="no run"):
        spread([])


def test_ratio_is_of_the_medians() -> None:
    assert ratio(spread([1.0, 3.0, 100.0]), spread([2.0])) == 1.5


def test_ratio_is_absent_where_a_broker_was_not_measured_or_measured_zero() -> None:
    measured = spread([1.0])
    assert ratio(measured, None) is None
    assert ratio(None, measured) is None
    assert ratio(measured, spread([0.0])) is None
