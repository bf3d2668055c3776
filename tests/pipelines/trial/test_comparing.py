"""Comparison of rows: matches in any order, and the reported differences."""

from __future__ import annotations

import itertools
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from odradek.pipelines.definition.places import Place
from odradek.pipelines.trial.comparing import Difference, FoundRow, are_equal, compare_rows, match_all
from odradek.pipelines.trial.model import ExpectedRows, Outlet, PlacedValue

PLACE = Place("p.test.yml", 1, 1)


def expected(*rows: Any, **settings: Any) -> ExpectedRows:
    placed = tuple(PlacedValue(row, Place("p.test.yml", number, 1)) for number, row in enumerate(rows, 10))
    return ExpectedRows(Outlet.SINK, "out", PLACE, placed, **settings)


def compare(wanted: ExpectedRows, *found: dict[str, Any]) -> list[Difference]:
    return compare_rows(wanted, [FoundRow(row) for row in found])


@given(st.lists(st.lists(st.booleans(), min_size=4, max_size=4), max_size=4))
def test_as_many_rows_are_paired_as_can_be(fits: list[list[bool]]) -> None:
    pairs = match_all(fits)
    taken = [each for each in pairs if each is not None]
    assert len(taken) == len(set(taken))
    assert all(each is None or fits[row][each] for row, each in enumerate(pairs))
    best = max(
        sum(fits[row][each] for row, each in enumerate(order[: len(fits)]))
        for order in itertools.permutations(range(4))
    )
    assert len(taken) == best


@given(st.permutations([{"a": 1, "b": {"c": [1, 2]}}, {"a": 1, "b": None}, {"a": 2.5, "b": None}]))
def test_order_does_not_count_unless_asked(rows: list[dict[str, Any]]) -> None:
    sorted_rows = [{"a": 1, "b": {"c": [1, 2]}}, {"a": 1, "b": None}, {"a": 2.5, "b": None}]
    assert not compare(expected(*sorted_rows), *rows)
    problems = compare(expected(*sorted_rows, in_order=True), *rows)
    assert [each.kind for each in problems] == ([] if rows == sorted_rows else ["order"])


def test_rows_that_fit_in_several_ways_are_in_order_if_one_of_them_is() -> None:
    found = [{"a": 1, "b": 1}, {"a": 1, "b": 2}, {"a": 1, "b": 3}]
    assert not compare(expected({"a": 1}, {"b": 2}, {"a": 1}, in_order=True), *found)
    assert not compare(expected({"a": 1}, {"b": 3}, in_order=True, may_have_more=True), *found)
    assert [each.kind for each in compare(expected({"b": 2}, {"a": 1}, {"b": 3}, in_order=True), *found)] == ["order"]


def test_columns_that_are_not_named_may_hold_anything_unless_asked() -> None:
    assert not compare(expected({"a": 1}), {"a": 1, "b": 2})
    (problems,) = compare(expected({"a": 1}, all_columns=True), {"a": 1, "b": 2})
    assert [(each.path, each.found) for each in problems.fields] == [("b", 2)]


def test_the_nearest_row_is_reported_field_by_field() -> None:
    row = {"a": 1, "b": {"c": 2, "d": 3}, "e": 4}
    (problems,) = compare(
        expected(row), {"a": 9, "b": {"c": 2, "d": 9}, "e": 9}, {"a": 1, "b": {"c": 2, "d": 4}, "e": 4}
    )[:1]
    assert (problems.kind, problems.place.line) == ("different", 10)
    assert [(each.path, each.expected, each.found) for each in problems.fields] == [("b.d", 3, 4)]


def test_missing_and_unexpected_rows_are_reported() -> None:
    problems = compare(expected({"a": 1}, {"a": 2}), {"a": 1}, {"a": 3}, {"a": 4})
    assert [(each.kind, each.expected, each.found) for each in problems] == [
        ("missing", {"a": 2}, None),
        ("unexpected", None, {"a": 3}),
        ("unexpected", None, {"a": 4}),
    ]


def test_others_may_be_there_where_only_some_are_asked_for() -> None:
    assert not compare(expected({"a": 1}, may_have_more=True), {"a": 1}, {"a": 3})


def test_the_count_alone_can_be_asked_for() -> None:
    wanted = ExpectedRows(Outlet.VIEW, "v", PLACE, None, 2)
    assert not compare(wanted, {}, {})
    assert [each.message for each in compare(wanted, {})] == ["2 rows expected, 1 found"]


def test_a_whole_value_is_compared_as_text() -> None:
    found = [FoundRow({}, {"_value": "hello", "_key": "k"})]
    assert not compare_rows(expected("hello"), found)
    assert not compare_rows(expected({"_key": "k"}), found)
    assert compare_rows(expected("bye"), found)


def test_what_is_equal() -> None:
    assert are_equal(1, 1.0)
    assert are_equal(0.1 + 0.2, 0.3)
    assert are_equal("2026-01-01 12:00", "2026-01-01T13:00:00.000+01:00")
    assert not are_equal("2026-01-01 12:00", "2026-01-01 12:01")
    assert not are_equal(1, True)
    assert not are_equal("1", 1)
    assert not are_equal(None, 0)


def test_only_the_reason_of_a_dead_letter_may_be_shortened() -> None:
    found = {"reason": "missing field: id"}
    row = PlacedValue({"reason": "missing field"}, PLACE)
    assert not compare(ExpectedRows(Outlet.DEAD_LETTERS, "", PLACE, (row,)), found)
    assert [each.kind for each in compare(expected({"reason": "missing field"}), found)] == ["missing", "unexpected"]
    other = PlacedValue({"reason": "missing"}, PLACE)
    assert compare(ExpectedRows(Outlet.DEAD_LETTERS, "", PLACE, (other,)), found)


def test_structs_and_lists_are_compared_with_the_text_that_a_table_has_of_them() -> None:
    assert not compare(expected({"a": [1, {"b": 2}], "s": {"x": 1}}), {"a": '[1.0, {"b": 2}]', "s": '{"x": 1}'})
    (problem,) = compare(expected({"a": [1, 2], "k": 1}), {"a": "[1,3]", "k": 1})
    assert [(each.path, each.expected, each.found) for each in problem.fields] == [("a[1]", 2, 3)]


def test_many_rows_that_compete_for_each_other_are_matched() -> None:
    """Each row fits two found ones, so that the last one moves all of those before it."""
    count = 1500
    fits = [[found in {row, row + 1} for found in range(count + 1)] for row in range(count)]
    fits.append([found == 0 for found in range(count + 1)])
    assert match_all(fits) == [*range(1, count + 1), 0]
