"""What a run of a case gives, in a form that can be compared."""

from __future__ import annotations

import base64
import datetime
import json
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from tests.pipelines.equivalence.cases import TYPES, Case, Sink

Row = tuple[tuple[str, Any], ...]
Letter = tuple[str, str, str | None]  # kind of the reason, source or step, place of the record


@dataclass
class Outcome:
    """Rows of sinks and views, dead letters, violations by step and expectation, late rows by step or flow."""

    rows: dict[str, Counter[Row]] = field(default_factory=dict)
    letters: Counter[Letter] = field(default_factory=Counter)
    violations: Counter[tuple[str, str]] = field(default_factory=Counter)
    late: Counter[str] = field(default_factory=Counter)


def plain_row(values: dict[str, Any]) -> Row:
    """A row whose values are equal if they mean the same, however they were stored."""
    return tuple(sorted((name, plain(TYPES.get(name, "STRING"), value)) for name, value in values.items()))


def plain(kind: str, value: Any) -> Any:
    if value is None:
        return None
    if kind == "TIMESTAMP":
        return milliseconds(value)
    if kind == "ARRAY<STRING>":
        items = json.loads(value) if isinstance(value, str) else value
        return tuple(items)
    if kind == "HEADERS":
        return tuple(json.loads(value) if isinstance(value, str) else value)
    if kind == "BINARY":
        return value if isinstance(value, str) else base64.b64encode(value).decode()
    if kind == "BOOLEAN":
        return bool(value)
    return value


def milliseconds(value: Any) -> int:
    moment = datetime.datetime.fromisoformat(value) if isinstance(value, str) else value
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=datetime.UTC)
    return round(moment.timestamp() * 1000)


def last_of_each(rows: list[dict[str, Any]], sink: Sink) -> list[dict[str, Any]]:
    """Of the rows of a group, written whenever it changed, the last."""
    if sink.mode == "append":
        return rows
    return list({plain_row({name: row[name] for name in sink.key}): row for row in rows}.values())


def differences(expected: Outcome, found: Outcome) -> list[str]:
    """The differences, as lines; empty if there are none."""
    reported: list[str] = []
    for name in sorted({*expected.rows, *found.rows}):
        reported += missing_and_extra(name, expected.rows.get(name, Counter()), found.rows.get(name, Counter()))
    reported += missing_and_extra("dead letters", *comparable(expected.letters, found.letters))
    for each in sorted({*expected.violations, *found.violations}):
        if expected.violations[each] != found.violations[each]:
            reported.append(
                f"violations of {each}: expected {expected.violations[each]}, found {found.violations[each]}"
            )
    for flow in sorted({*expected.late, *found.late}):
        if expected.late[flow] != found.late[flow]:
            reported.append(f"late rows of {flow}: expected {expected.late[flow]}, counted {found.late[flow]}")
    return reported


def comparable(expected: Counter[Letter], found: Counter[Letter]) -> tuple[Counter[Letter], Counter[Letter]]:
    """Without the places of records where a dead letter was derived from several records and has none."""
    without = {(kind, step) for kind, step, place in [*expected, *found] if place is None}

    def coarse(letters: Counter[Letter]) -> Counter[Letter]:
        made: Counter[Letter] = Counter()
        for (kind, step, place), count in letters.items():
            made[kind, step, None if (kind, step) in without else place] += count
        return made

    return coarse(expected), coarse(found)


def missing_and_extra(name: str, expected: Counter[Any], found: Counter[Any]) -> list[str]:
    missing = [f"{name}: missing {count} × {row}" for row, count in sorted((expected - found).items(), key=repr)]
    return missing + excess(name, expected, found)


def excess(name: str, expected: Counter[Any], found: Counter[Any]) -> list[str]:
    return [f"{name}: unexpected {count} × {row}" for row, count in sorted((found - expected).items(), key=repr)]


def described(case: Case, definition: str, reported: list[str]) -> str:
    """A failing case for a report: the definition, the records of each batch, and the differences."""
    lines = [definition, "records:"]
    for number, batch in enumerate(case.batches):
        lines += [
            f"  batch {number} {source} {each.partition}:{each.offset} "
            + (f"{each.rejected}: {each.text!r}" if each.rejected else json.dumps(dict(each.values), default=str))
            for source, records in batch.items()
            for each in records
        ]
    return "\n".join([*lines, "differences:", *(f"  {each}" for each in reported)])
