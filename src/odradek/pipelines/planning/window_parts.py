"""Windows, dates and truncated times as parts of a group's identity, and the functions of time that tell them apart.

Windows start at least a step apart: their slide or size, or the gap of sessions. A function that leaves out what is
below a unit of time therefore tells them apart if their step has the length of the unit. So it does dates and truncated
times, whose step is their unit.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from odradek.pipelines.definition.vocabulary import parse_duration

if TYPE_CHECKING:
    from collections.abc import Collection

    from sqlglot import exp

    from odradek.pipelines.definition.vocabulary import Duration

WINDOW = "window"
UNITS_MS = {
    "week": 604_800_000, "day": 86_400_000, "hour": 3_600_000, "minute": 60_000, "second": 1_000, "millisecond": 1
}  # fmt: skip
SIDES = re.compile("^(?:[12] )*")  # unions and joins number the parts of their sides
WINDOW_PART = re.compile(f"{SIDES.pattern}{WINDOW}(?: by ({'|'.join(UNITS_MS)}))?")
STEP = re.compile(f" by ({'|'.join(UNITS_MS)})$")
PRECISE, COARSE = "microsecond", "month"  # what times are stored in; more than a week, which tells no values apart
UNITS = {**{each: each for each in UNITS_MS}, "dd": "day", PRECISE: PRECISE}
LONGER_THAN_DAYS = frozenset(("mon", "month", "mm", "quarter", "year", "yyyy", "yy"))
ORDERED = "%Y%m%d%H%M%S"
QUOTED = re.compile(r"'[^']*'|(?<=%[A-Za-z])strict")  # sqlglot marks directives of two digits as strict
LETTERS = re.compile(r"%-?[A-Za-z]|[A-Za-z]")
OFFSETS = frozenset(("X", "x", "O", "%z"))  # what shows the offset from UTC; `%z` is Spark's `Z`
TIMES = (("hour", "H"), ("minute", "M"), ("second", "S"))
FRACTIONS = ((6, PRECISE), (3, "millisecond"))  # by the number of digits
WHOLE_NUMBERS = frozenset(("INT", "BIGINT"))


def window_part(step: Duration | None) -> str:
    """The part of windows that start at least this long after each other; None if the time is not known."""
    known_ms = 0 if step is None else step.milliseconds
    unit = next((unit for unit, unit_ms in UNITS_MS.items() if known_ms >= unit_ms), None)
    return stepped_part(WINDOW, unit)


def stepped_part(name: str, unit: str | None) -> str:
    """The part of values that are at least a unit of time apart, if one is given."""
    return name if unit is None else f"{name} by {unit}"


def called_window_part(call: exp.Expr) -> str:
    """The part of a call of `window` (time, size, slide, start) or `session_window` (time, gap)."""
    from sqlglot import exp  # noqa: PLC0415 - parsed already

    lengths = call.expressions[1:3]
    is_known = bool(lengths) and isinstance(lengths[-1], exp.Literal)
    return window_part(parse_duration(lengths[-1].name) if is_known else None)


def told_apart(parts: frozenset[str], unit: str) -> frozenset[str]:
    """The parts that values without what is below the unit tell apart."""
    if unit == PRECISE:
        return parts
    least_ms = UNITS_MS.get(unit)
    steps = {each: UNITS_MS[match[1]] for each in parts if (match := STEP.search(each)) is not None}
    return frozenset(each for each, step_ms in steps.items() if least_ms is not None and step_ms >= least_ms)


def step_of(node: exp.Expr) -> str | None:
    """The unit that values of a function are apart which returns dates or truncated times; None for others."""
    from sqlglot import exp  # noqa: PLC0415 - takes long to import

    unit = None if isinstance(node, exp.TimeToStr | exp.UnixToStr) else unit_left(node)
    if unit == COARSE:
        return "day" if node.args["unit"].name.lower() in LONGER_THAN_DAYS else None
    return unit if unit in UNITS_MS else None


def unit_left(node: exp.Expr) -> str | None:
    """The smallest unit of time in the result of a function of a time; None for other expressions."""
    from sqlglot import exp  # noqa: PLC0415 - takes long to import

    if isinstance(node, exp.TsOrDsToDate) or (isinstance(node, exp.Cast) and node.to.this.name == "DATE"):
        return "day"
    if isinstance(node, exp.TimestampTrunc | exp.DateTrunc):
        unit = node.args.get("unit")
        return UNITS.get("" if unit is None else unit.name.lower(), COARSE)
    if isinstance(node, exp.UnixSeconds | exp.UnixMillis):
        return "second" if isinstance(node, exp.UnixSeconds) else "millisecond"
    if isinstance(node, exp.TimeToStr | exp.UnixToStr):
        return unit_of_format(format_of(node))
    return None


def is_number_of_seconds(node: exp.Expr, parts: Collection[str]) -> bool:
    """Whether this is the seconds of a window with these parts: a cast to a whole number, or unix_timestamp."""
    from sqlglot import exp  # noqa: PLC0415 - takes long to import

    is_whole = isinstance(node, exp.Cast) and node.to.this.name in WHOLE_NUMBERS
    return (is_whole or isinstance(node, exp.StrToUnix)) and bool(parts) and all(map(WINDOW_PART.fullmatch, parts))


def format_of(node: exp.Expr) -> str:
    """The format of a text of a time, as that of strftime; empty if it is not a literal."""
    from sqlglot import exp  # noqa: PLC0415 - takes long to import

    written = node.args.get("format")
    return written.name if isinstance(written, exp.Literal) else ""


def shows_offset(node: exp.Expr) -> bool:
    """Whether a text of a time has its offset from UTC, by which times with the same clock time differ."""
    return not OFFSETS.isdisjoint(LETTERS.findall(QUOTED.sub("", format_of(node))))


def unit_of_format(written: str) -> str:
    """The smallest unit that a format shows together with all larger ones; formats are those of strftime."""
    letters = LETTERS.findall(QUOTED.sub("", written))
    shown = {each[-1] for each in letters if each[0] == "%"}
    if "k" in letters or ("I" in shown and "p" in shown):  # strftime has no directive for the hours 1 to 24 of `k`
        shown.add("H")
    is_date = shown & set("Yy") and ("j" in shown or ("d" in shown and shown & set("mbB")))
    found = "day" if is_date else COARSE
    for unit, directive in TIMES if is_date else ():
        if directive not in shown:
            break
        found = unit
    digits = 6 if "%f" in letters else letters.count("S")
    return next((unit for least, unit in FRACTIONS if found == "second" and digits >= least), found)


def is_ordered_format(written: str) -> bool:
    """Whether texts of the format have the order of their times: larger units come first, each with all its digits."""
    shown = "".join(LETTERS.findall(QUOTED.sub("", written)))
    return bool(shown) and ORDERED.startswith(shown)
