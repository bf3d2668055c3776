"""Compares expected rows with found ones: matches, missing rows, and differences to the most similar row.

Only the columns of the expected row are compared. Timestamps are equal regardless of their spelling, and numbers are
compared to a billionth.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import field
from typing import TYPE_CHECKING, Any

from odradek.conventions.dataclass import dataclass
from odradek.pipelines.definition.vocabulary import parse_moment
from odradek.pipelines.trial.model import Outlet

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from odradek.pipelines.definition.places import Place
    from odradek.pipelines.trial.model import ExpectedRows

MOMENT = re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d")
PRECISION = 1e-9


@dataclass(frozen=True, slots=True)
class FoundRow:
    """A row: its columns, and for records also `_key`, `_headers`, `_value` …."""

    columns: Mapping[str, Any]
    record: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class FieldDifference:
    """A column whose value differs from the expected one; of a missing one `found` is None."""

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
    differ = letter_differences if expected.outlet is Outlet.DEAD_LETTERS else row_differences
    apart = [[differ(row.value, each, expected.all_columns) for each in found] for row in expected.rows or ()]
    fits = [[not fields for fields in row] for row in apart]
    matched = match_all(fits)
    if expected.rows is not None:
        differences += unmatched(expected, found, apart, matched)
    if expected.in_order and not differences and not is_in_order(fits):
        order = ", ".join(str(number + 1) for number in matched if number is not None)
        message = f"the rows are in another order: {order}"
        differences.append(Difference(expected.label, "order", expected.place, message))
    return differences


def unmatched(
    expected: ExpectedRows,
    found: Sequence[FoundRow],
    apart: Sequence[Sequence[tuple[FieldDifference, ...]]],
    matched: Sequence[int | None],
) -> Iterator[Difference]:
    where = expected.label
    rest = [number for number in range(len(found)) if number not in matched]
    for row, fields_by_row, match in zip(expected.rows or (), apart, matched, strict=True):
        if match is not None:
            continue
        near = min(rest, key=[len(each) for each in fields_by_row].__getitem__, default=None)
        if near is None or not is_similar(row.value, fields_by_row[near]):
            yield Difference(where, "missing", row.place, "row not found", row.value)
            continue
        if not expected.may_have_more:
            rest.remove(near)
        fields = fields_by_row[near]
        message = "the nearest row differs in " + ", ".join(each.path for each in fields)
        yield Difference(where, "different", row.place, message, row.value, shown(found[near]), fields)
    for each in () if expected.may_have_more else rest:
        yield Difference(where, "unexpected", expected.place, "unexpected row", None, shown(found[each]))


def is_similar(expected: Any, fields: Sequence[FieldDifference]) -> bool:
    """Whether at least one column has the expected value."""
    different = {each.path.partition(".")[0].partition("[")[0] for each in fields}
    return isinstance(expected, dict) and not different.issuperset(expected)


def shown(row: FoundRow) -> Any:
    return dict(row.columns) if row.columns else row.record.get("_value")


def match_all(fits: Sequence[Sequence[bool]]) -> list[int | None]:
    """Matches as many expected rows with found ones as possible; the found row of each, or None.

    An expected row with few columns may match several found rows, so earlier matches are changed where that helps.
    """
    owner: dict[int, int] = {}
    matched: list[int | None] = [None] * len(fits)
    for row in range(len(fits)):
        taker, candidate = _path_to_free(row, fits, owner)
        while candidate is not None:  # each row on the path takes its candidate, and leaves its own to the one before
            by = taker[candidate]
            owner[candidate], matched[by], candidate = by, candidate, matched[by]
    return matched


def _path_to_free(
    row: int, fits: Sequence[Sequence[bool]], owner: Mapping[int, int]
) -> tuple[dict[int, int], int | None]:
    """The first found row without an owner that can be reached, and the row that would take each found row."""
    taker: dict[int, int] = {}
    rows = [row]
    for each in rows:
        for candidate, fit in enumerate(fits[each]):
            if not fit or candidate in taker:
                continue
            taker[candidate] = each
            if candidate not in owner:
                return taker, candidate
            rows.append(owner[candidate])
    return taker, None


def is_in_order(fits: Sequence[Sequence[bool]]) -> bool:
    """Whether the expected rows occur in this order, possibly with other rows in between."""
    position = 0
    for row in fits:
        if True not in row[position:]:
            return False
        position = row.index(True, position) + 1
    return True


def row_differences(expected: Any, row: FoundRow, all_columns: bool) -> tuple[FieldDifference, ...]:
    """The differences of a row; an expected value that is not a mapping is compared with the record's whole value."""
    if not isinstance(expected, dict):
        wanted = expected if isinstance(expected, str | None) else json.dumps(expected)
        return tuple(value_differences("_value", wanted, row.record.get("_value"), all_columns))
    named = {**row.record, **row.columns}
    return tuple(field_differences("", expected, named, all_columns, row.columns))


def letter_differences(expected: Any, row: FoundRow, all_columns: bool) -> tuple[FieldDifference, ...]:
    """The differences of a dead letter; the expected reason may be the part before the colon only."""
    return tuple(each for each in row_differences(expected, row, all_columns) if not is_kind_of_reason(each))


def is_kind_of_reason(each: FieldDifference) -> bool:
    return each.path == "reason" and isinstance(each.found, str) and each.found.partition(":")[0] == each.expected


def field_differences(
    prefix: str, expected: Mapping[str, Any], found: Mapping[str, Any], all_columns: bool, own: Mapping[str, Any]
) -> Iterator[FieldDifference]:
    """The differences of fields; with `all_columns` none but the expected ones may be among the `own` ones."""
    for name, value in expected.items():
        if name not in found:
            yield FieldDifference(prefix + name, value, None, is_absent=True)
        else:
            yield from value_differences(prefix + name, value, found[name], all_columns)
    extra = [name for name in own if all_columns and name not in expected]
    yield from (FieldDifference(prefix + name, None, own[name]) for name in extra)


def value_differences(path: str, expected: Any, found: Any, all_columns: bool) -> Iterator[FieldDifference]:
    if isinstance(expected, dict | list) and isinstance(found, str):
        found = parsed(found)
    if isinstance(expected, dict) and isinstance(found, dict):
        yield from field_differences(f"{path}.", expected, found, all_columns, found)
    elif isinstance(expected, list) and isinstance(found, list) and len(expected) == len(found):
        for number, pair in enumerate(zip(expected, found, strict=True)):
            yield from value_differences(f"{path}[{number}]", *pair, all_columns)
    elif not are_equal(expected, found):
        yield FieldDifference(path, expected, found)


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
