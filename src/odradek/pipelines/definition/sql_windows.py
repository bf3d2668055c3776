"""Finds calls of `window` and `session_window` that Spark refuses: their lengths, and several of them in one SELECT."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from odradek.pipelines.definition.sql_findings import Finding
from odradek.pipelines.definition.sql_written import name_of, start_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

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
    windows = {
        (name_of(each), tuple(argument_text(argument, scope) for argument in each.expressions)): each
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


def argument_text(node: exp.Expr, scope: Scope) -> str:
    """The text of an argument, the same for all spellings of it: names are without quotes, and without their table if
    no other table has the column."""
    from sqlglot import exp  # noqa: PLC0415 - parsed already

    def plain(each: exp.Expr) -> exp.Expr:
        if not isinstance(each, exp.Column):
            return each
        names = [part.name.lower() for part in each.parts]
        if len(names) > 1 and names[0] in scope.tables and is_unique(names[1], scope):
            names = names[1:]
        return exp.Dot.build([exp.to_identifier(name) for name in names]) if len(names) > 1 else exp.column(names[0])

    length = length_us(node)
    return str(node.unnest().transform(plain).sql(dialect="spark")).lower() if length is None else str(length)


def is_unique(column: str, scope: Scope) -> bool:
    """Whether one table only has a column of this name."""
    return len(scope.tables) == 1 or (scope.is_known and len(scope.tables_with(column)) == 1)


def length_findings(call: exp.Expr) -> Iterator[Finding]:
    """What is wrong with the lengths of a window, size, slide and start, or with the gap of a session, which may be any
    text of an interval."""
    from sqlglot import exp  # noqa: PLC0415

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
    from sqlglot import exp  # noqa: PLC0415

    match = INTERVAL.fullmatch(node.name) if isinstance(node, exp.Literal) and node.is_string else None
    if match is None:
        return None
    return round(
        sum(float(number.replace(" ", "")) * UNITS_US[unit.lower()] for number, unit in PART.findall(match[1]))
    )
