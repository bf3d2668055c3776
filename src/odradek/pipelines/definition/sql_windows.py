"""Finds calls of `window` and `session_window` that Spark refuses: their lengths, and several of them in one SELECT."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from odradek.pipelines.definition.sql_findings import Finding
from odradek.pipelines.definition.sql_written import name_of, start_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from sqlglot import exp

    from odradek.pipelines.definition.sql_scope import Scope

UNITS_US = {
    "microsecond": 1,
    "millisecond": 1_000,
    "second": 1_000_000,
    "minute": 60_000_000,
    "hour": 3_600_000_000,
    "day": 86_400_000_000,
    "week": 604_800_000_000,  # longer units have no certain length
}
# Only seconds may have a fraction.
PART = re.compile(rf"([+-]?\s*\d+(?:\.\d+(?=\s+second))?)\s+({'|'.join(UNITS_US)})s?\b\s*", re.IGNORECASE)
INTERVAL = re.compile(rf"\s*(?:interval\s+)?((?:{PART.pattern})+)", re.IGNORECASE)
HINT = "write a number and a unit up to weeks: '10 minutes', '1 hour 30 minutes', '1 week'"


def window_findings(select: exp.Expr, calls: Iterable[exp.Expr], scope: Scope) -> Iterator[Finding]:
    """The findings of a SELECT over these tables that makes these calls of `window` and `session_window`."""
    own = list(calls)
    for each in own:
        yield from length_findings(each)
    owners = shared_owners(select, scope)
    windows = {
        (name_of(each), *(time_text(time, scope, owners) for time in each.expressions[:1]), *lengths_of(each)): each
        for each in grouping_calls(select, own)
    }
    if len(windows) > 1:
        second = list(windows.values())[1]
        yield Finding(
            "a SELECT has several windows, which Spark does not support",
            "use one window in each SELECT: that of the longer time in a step behind, over the ends of the shorter one",
            *start_of(second),
        )


def grouping_calls(select: exp.Expr, calls: list[exp.Expr]) -> list[exp.Expr]:
    """The calls that are selected or grouped by; WHERE may have others."""
    parts = [*select.expressions, *filter(None, [select.args.get("group")])]
    nodes = {id(node) for part in parts for node in part.walk()}
    return [each for each in calls if id(each) in nodes]


def time_text(node: exp.Expr, scope: Scope, owners: Mapping[str, str]) -> str:
    """The text of the time of a window, equal for what Spark takes for equal: names are without quotes, and without
    their table if no other table has the column, or USING takes it from this one. Spark tells `at` from `AT`."""
    from sqlglot import exp  # noqa: PLC0415 - parsed already

    def plain(each: exp.Expr) -> exp.Expr:
        if not isinstance(each, exp.Column):
            return each
        names = [part.name for part in each.parts]
        if len(names) > 1 and names[0].lower() in scope.tables:
            table, column = names[0].lower(), names[1].lower()
            names = names[1:] if is_unique(column, scope) or owners.get(column) == table else [table, *names[1:]]
        return exp.Dot.build([exp.to_identifier(name) for name in names]) if len(names) > 1 else exp.column(names[0])

    return str(node.unnest().transform(plain).sql(dialect="spark"))


def lengths_of(call: exp.Expr) -> list[str]:
    """The lengths of a window: of `window` in microseconds, with its slide and its start; Spark compares the gaps of
    sessions as they are written."""
    texts = [each.sql(dialect="spark") for each in call.expressions[1:]]
    if name_of(call) != "window":
        return texts
    lengths = [length_us(each) for each in call.expressions[1:]]
    found = [text if length is None else str(length) for length, text in zip(lengths, texts, strict=True)]
    return [*found, *found[len(found) - 1 : 1], "0"][:3]


def shared_owners(select: exp.Expr, scope: Scope) -> dict[str, str]:
    """The table from which USING takes a column: the first that has it, or the right side of a right join."""
    owners: dict[str, str] = {}
    for join in select.args.get("joins") or ():
        side, right = str(join.args.get("side") or "").lower(), str(join.this.alias_or_name).lower()
        for name in (each.name.lower() for each in join.args.get("using") or ()):
            first = next((table for table, columns in scope.tables.items() if name in (columns or ())), "")
            owners[name] = right if side == "right" else "" if side == "full" else owners.get(name, first)
    return owners


def is_unique(column: str, scope: Scope) -> bool:
    """Whether one table only has a column of this name."""
    return len(scope.tables) == 1 or (scope.is_known and len(scope.tables_with(column)) == 1)


def length_findings(call: exp.Expr) -> Iterator[Finding]:
    """What is wrong with the lengths of a window, size, slide and start, or with the gap of a session, which may be any
    text of an interval."""
    from sqlglot import exp  # noqa: PLC0415 - takes long to import

    name, lengths = name_of(call), call.expressions[1:]
    refused = (exp.Interval, exp.Column, exp.Anonymous, exp.Cast) if name == "window" else (exp.Interval,)
    for each in lengths:
        text = each.sql(dialect="spark")
        is_wrong = name == "window" and isinstance(each, exp.Literal) and each.is_string and length_us(each) is None
        if is_wrong or isinstance(each, refused):
            yield Finding(f"{name}() does not take the length {text}", HINT, *start_of(call))
    lengths = lengths if name == "window" else []
    known = [length for each in lengths if (length := length_us(each)) is not None]
    if not known or len(known) < len(lengths):
        return
    size, slide, start = [*known, *known[len(known) - 1 : 1], 0][:3]
    given = f"window() has the lengths {', '.join(repr(each.name) for each in lengths)}"
    if size <= 0 or not 0 < slide <= size:
        message = f"{given}: its slide, the second one, must be at most its size, the first one"
        yield Finding(message, "write window(time, size, slide), both longer than 0", *start_of(call))
    elif abs(start) >= slide:
        message = f"{given}: its start, the third one, must be shorter than its slide"
        yield Finding(message, "subtract the slide from it", *start_of(call))


def length_us(node: exp.Expr) -> int | None:
    """The length that a text says, in microseconds; None for expressions and for what Spark does not take."""
    from sqlglot import exp  # noqa: PLC0415 - takes long to import

    match = INTERVAL.fullmatch(node.name) if isinstance(node, exp.Literal) and node.is_string else None
    if match is None:
        return None
    return round(
        sum(float(number.replace(" ", "")) * UNITS_US[unit.lower()] for number, unit in PART.findall(match[1]))
    )
