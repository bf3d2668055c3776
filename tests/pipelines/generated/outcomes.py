"""Compares what a run has written with what the oracle expects."""

from __future__ import annotations

import datetime
import json
import math
from collections import Counter
from typing import TYPE_CHECKING, Any

from tests.pipelines.generated.constructs import Construct
from tests.pipelines.generated.ends import CANNOT_STORE
from tests.pipelines.generated.expressions import TYPES
from tests.pipelines.generated.oracle import CANNOT_COMPUTE, NO_EVENT_TIME, milliseconds

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tests.pipelines.generated.drawing import Case
    from tests.pipelines.generated.ends import End
    from tests.pipelines.generated.expressions import Values
    from tests.pipelines.generated.oracle import Outcome

Row = tuple[tuple[str, Any], ...]
IMPLICIT = (NO_EVENT_TIME, CANNOT_COMPUTE, CANNOT_STORE)  # checks of rules, whose rows are dead letters


def plain_row(values: Values, kind: str) -> Row:
    """A row whose values are equal if they mean the same, however an end of this kind stores them."""
    return tuple(sorted((name, plain(TYPES.get(name, "STRING"), value, kind)) for name, value in values.items()))


def plain(column: str, value: Any, kind: str) -> Any:
    if column == "DOUBLE" and value is not None:
        number = float(value)
        if kind == "table":  # a database stores −0.0 as 0.0, and NaN as null
            return None if math.isnan(number) else repr(number)
        return "NaN" if math.isnan(number) else repr(number + 0.0)
    if column == "TIMESTAMP" and value is not None:
        moment = datetime.datetime.fromisoformat(value) if isinstance(value, str) else value
        return milliseconds(moment if moment.tzinfo else moment.replace(tzinfo=datetime.UTC))
    if column.startswith("ARRAY") and value is not None:
        return tuple(json.loads(value) if isinstance(value, str) else value)
    return bool(value) if column == "BOOLEAN" else value


def with_one_zero(values: Values) -> Values:
    """0.0 in place of −0.0, which is its equal."""
    return {name: value + 0.0 if isinstance(value, float) else value for name, value in values.items()}


def differences(case: Case, expected: Outcome, found: Outcome) -> list[str]:
    """The differences, as lines; empty if there are none."""
    reported: list[str] = []
    for end in case.ends:
        wanted = Counter(plain_row(with_one_zero(each), end.kind) for each in expected.rows[end.name])
        reported += of_rows(end, wanted, [plain_row(each, end.kind) for each in found.rows[end.name]])
    reported += of_letters(case, expected, found)
    for each in sorted({*expected.violations, *found.violations}):
        is_known = each[0] not in case.changing and each[1] not in IMPLICIT
        if is_known and expected.violations[each] != found.violations[each]:
            counts = f"expected {expected.violations[each]}, found {found.violations[each]}"
            reported.append(f"violations of {each}: {counts}")
    late = expected.late.total()
    return reported + [f"late rows of {flow}: {n}, of {late} at most" for flow, n in found.late.items() if n > late]


def of_rows(end: End, expected: Counter[Row], rows: list[Row]) -> list[str]:
    """A topic with intermediate rows has the last one of each group last. A group that a filter removed at last was
    written before."""
    if end.construct is not Construct.UPDATE:
        return missing_and_extra(end.name, expected, Counter(rows))
    if end.has_filter:
        return missing_and_extra(end.name, Counter(set(expected)), Counter(set(rows) & set(expected)))
    last = {tuple(value for name, value in row if name in end.key): row for row in rows}
    return missing_and_extra(end.name, expected, Counter(last.values()))


def of_letters(case: Case, expected: Outcome, found: Outcome) -> list[str]:
    """Without the places of records where a dead letter is of several records, and without the number of those of
    groups, which each batch may write again."""
    changing = {each.name for each in case.ends if each.of_groups}
    without = {(kind, step) for kind, step, place in [*expected.letters, *found.letters] if place is None}

    def coarse(letters: Counter[tuple[str, str, str | None]]) -> Counter[Any]:
        made: Counter[Any] = Counter()
        for (kind, step, place), count in letters.items():
            made[kind, step, None if (kind, step) in without else place] += count
        return Counter({each: 1 if each[1] in changing else count for each, count in made.items()})

    return missing_and_extra("dead letters", coarse(expected.letters), coarse(found.letters))


def missing_and_extra(name: str, expected: Counter[Any], found: Counter[Any]) -> list[str]:
    return [
        *(f"{name}: missing {count} × {row}" for row, count in in_order(expected - found)),
        *(f"{name}: unexpected {count} × {row}" for row, count in in_order(found - expected)),
    ]


def in_order(counts: Counter[Any]) -> Iterable[tuple[Any, int]]:
    return sorted(counts.items(), key=repr)


def described(case: Case, batches: Iterable[dict[str, Any]], reported: Iterable[str]) -> str:
    """A case for a report: the definition, the records of each batch, and the differences."""
    lines = [f"seed {case.seed}", case.text, "records:"]
    for number, batch in enumerate(batches):
        lines += [
            f"  batch {number} {source} {each.partition}:{each.offset} {each.value!r}"
            for source, records in batch.items()
            for each in records
        ]
    return "\n".join([*lines, "differences:", *(f"  {each}" for each in reported)])
