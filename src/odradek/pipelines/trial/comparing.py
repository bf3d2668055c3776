"""Compares expected rows with found ones: matches, missing rows, and differences to the most similar row.

Only the columns of the expected row are compared. Timestamps are equal regardless of their spelling, and numbers are
compared to a billionth.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from odradek.pipelines.definition.vocabulary import parse_moment
from odradek.pipelines.trial.model import Outlet

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from odradek.pipelines.definition.places import Place
    from odradek.pipelines.trial.model import ExpectedRows

MOMENT = re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d")
PRECISION = 1e-9
ABSENT = object()


@dataclass(frozen=True, slots=True)
class FoundRow:
    """A row: its columns, and for records also `_key`, `_headers`, `_value` …."""

    columns: Mapping[str, Any]
    record: Mapping[str, Any] = field(default_factory=dict)

    def get(self, name: str) -> Any:
        return self.columns.get(name, self.record.get(name, ABSENT))


@dataclass(frozen=True, slots=True)
class FieldDifference:
    """A column whose value differs from the expected one; a missing column has `found` None and `is_absent`."""

    path: str
    expected: Any
    found: Any
    is_absent: bool = False


@dataclass(frozen=True, slots=True)
class Difference:
    """One difference between expected and found rows, in an outlet of a case."""

    where: str
    kind: str  # missing | different | unexpected | count | order | error
    place: Place
    message: str
    expected: Any = None
    found: Any = None
    fields: tuple[FieldDifference, ...] = ()


def compare_rows(expected: ExpectedRows, found: Sequence[FoundRow]) -> list[Difference]:
    """All differences; empty if the rows are as expected."""
    differences = []
    if expected.count is not None and expected.count != len(found):
        message = f"{expected.count} rows expected, {len(found)} found"
        differences.append(Difference(expected.label, "count", expected.place, message, expected.count, len(found)))
    if expected.rows is None:
        return differences
    differ = letter_differences if expected.outlet is Outlet.DEAD_LETTERS else row_differences
    apart = [[differ(row.value, each, expected.all_columns) for each in found] for row in expected.rows]
    matched = match_all([[not fields for fields in row] for row in apart])
    differences += unmatched(expected, found, apart, matched)
    if expected.in_order and not differences and not is_in_order([[not fields for fields in row] for row in apart]):
        order = ", ".join(str(number + 1) for number in matched if number is not None)
        message = f"the rows are in another order: {order}"
        differences.append(Difference(expected.label, "order", expected.place, message))
    return differences


def unmatched(
    expected: ExpectedRows,
    found: Sequence[FoundRow],
    apart: Sequence[Sequence[tuple[FieldDifference, ...]]],
    matched: Sequence[int | None],
) -> list[Difference]:
    rest = [number for number in range(len(found)) if number not in matched]
    differences = []
    for number, row in enumerate(expected.rows or ()):
        if matched[number] is not None:
            continue
        near = min(rest, key=lambda each: len(apart[number][each]), default=None)
        if near is None or not is_similar(row.value, apart[number][near]):
            message = "row not found"
            differences.append(Difference(expected.label, "missing", row.place, message, row.value))
            continue
        if not expected.may_have_more:
            rest.remove(near)
        fields = apart[number][near]
        message = "the nearest row differs in " + ", ".join(each.path for each in fields)
        differences.append(
            Difference(expected.label, "different", row.place, message, row.value, shown(found[near]), fields)
        )
    if not expected.may_have_more:
        for each in rest:
            row_found = shown(found[each])
            differences.append(
                Difference(expected.label, "unexpected", expected.place, "unexpected row", None, row_found)
            )
    return differences


def is_similar(expected: Any, fields: Sequence[FieldDifference]) -> bool:
    """Whether at least one column has the expected value."""
    if not isinstance(expected, dict):
        return False
    different = {each.path.partition(".")[0].partition("[")[0] for each in fields}
    return not different.issuperset(expected)


def shown(row: FoundRow) -> Any:
    return dict(row.columns) if row.columns else row.record.get("_value")


def match_all(fits: Sequence[Sequence[bool]]) -> list[int | None]:
    """Matches as many expected rows with found ones as possible; the found row of each, or None.

    An expected row with few columns may match several found rows, so earlier matches are changed where that helps.
    """
    owner: dict[int, int] = {}

    def place(row: int, tried: set[int]) -> bool:
        for candidate, fit in enumerate(fits[row]):
            if fit and candidate not in tried:
                tried.add(candidate)
                if candidate not in owner or place(owner[candidate], tried):
                    owner[candidate] = row
                    return True
        return False

    for row in range(len(fits)):
        place(row, set())
    by_row = {row: candidate for candidate, row in owner.items()}
    return [by_row.get(row) for row in range(len(fits))]


def is_in_order(fits: Sequence[Sequence[bool]]) -> bool:
    """Whether the expected rows occur in this order, possibly with other rows in between."""
    position = 0
    for row in fits:
        position = next((number + 1 for number in range(position, len(row)) if row[number]), -1)
        if position < 0:
            return False
    return True


def row_differences(expected: Any, row: FoundRow, all_columns: bool) -> tuple[FieldDifference, ...]:
    """The differences of a row; an expected value that is not a mapping is compared with the record's whole value."""
    if not isinstance(expected, dict):
        wanted = expected if isinstance(expected, str | None) else json.dumps(expected)
        return tuple(value_differences("_value", wanted, row.record.get("_value"), all_columns))
    found: list[FieldDifference] = []
    for name, value in expected.items():
        found += field_differences(name, value, row.get(name), all_columns)
    if all_columns:
        found += [FieldDifference(name, None, value) for name, value in row.columns.items() if name not in expected]
    return tuple(found)


def letter_differences(expected: Any, row: FoundRow, all_columns: bool) -> tuple[FieldDifference, ...]:
    """The differences of a dead letter; the expected reason may be the part before the colon only."""
    differences = row_differences(expected, row, all_columns)
    return tuple(each for each in differences if not (each.path == "reason" and is_kind_of_reason(each)))


def is_kind_of_reason(reason: FieldDifference) -> bool:
    return isinstance(reason.found, str) and reason.found.partition(":")[0] == reason.expected


def field_differences(path: str, expected: Any, found: Any, all_columns: bool) -> list[FieldDifference]:
    if found is ABSENT:
        return [FieldDifference(path, expected, None, is_absent=True)]
    return value_differences(path, expected, found, all_columns)


def value_differences(path: str, expected: Any, found: Any, all_columns: bool) -> list[FieldDifference]:
    if isinstance(expected, dict) and isinstance(found, str):
        found = parsed(found)
    if isinstance(expected, dict) and isinstance(found, dict):
        differences = []
        for name, value in expected.items():
            differences += field_differences(f"{path}.{name}", value, found.get(name, ABSENT), all_columns)
        extra = [name for name in found if all_columns and name not in expected]
        return differences + [FieldDifference(f"{path}.{name}", None, found[name]) for name in extra]
    if isinstance(expected, list) and isinstance(found, list) and len(expected) == len(found):
        return [
            difference
            for number, pair in enumerate(zip(expected, found, strict=True))
            for difference in value_differences(f"{path}[{number}]", *pair, all_columns)
        ]
    return [] if are_equal(expected, found) else [FieldDifference(path, expected, found)]


def are_equal(expected: Any, found: Any) -> bool:
    if isinstance(expected, bool) or isinstance(found, bool):
        return expected is found
    if isinstance(expected, int | float) and isinstance(found, int | float):
        return expected == found or math.isclose(expected, found, rel_tol=PRECISION)
    if isinstance(expected, str) and isinstance(found, str):
        return expected == found or is_same_moment(expected, found)
    return bool(expected == found)


def is_same_moment(one: str, other: str) -> bool:
    if not (MOMENT.match(one) and MOMENT.match(other)):
        return False
    moment = parse_moment(one)
    return moment is not None and moment == parse_moment(other)


def parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text
