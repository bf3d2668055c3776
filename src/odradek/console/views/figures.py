"""Numbers and times as text, sparklines as points of an SVG line, numbers in forms, pages of lists. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Generic, TypeVar

from odradek.conventions.dataclass import dataclass
from odradek.conventions.figures import count_text, iso_text

DASH = "–"
SPARK_WIDTH, SPARK_HEIGHT = 96, 22
PAGE_ROWS = 50
T = TypeVar("T")
R = TypeVar("R")


def number(value: float | None) -> str:
    return DASH if value is None else f"{value:,.0f}"


def offset(value: int | None) -> str:
    """Without separators, so that it can be pasted into a form, an address or a command."""
    return DASH if value is None else str(value)


def compact(value: float | None) -> str:
    """`982`, `12.4 k`, `3.1 M`."""
    return DASH if value is None else _three_digits(value, ("", " k", " M", " G"))


def rate(value: float | None) -> str:
    """Records per second: one digit after the point below ten."""
    if value is None:
        return DASH
    return f"{value:.1f}" if 0 < value < 10 else compact(value)


def size(value: float | None) -> str:
    """Shorter than that of commands: a column of a table has few characters."""
    return DASH if value is None or value < 0 else _three_digits(value, (" B", " KB", " MB", " GB", " TB"))


def _three_digits(value: float, units: Sequence[str]) -> str:
    """Three digits at most, below the last unit; the first unit has no fractions."""
    power = 0
    while abs(value) >= 999.5 and power < len(units) - 1:
        value /= 1000
        power += 1
    return f"{value:.{0 if not power or abs(value) >= 100 else 1}f}{units[power]}"


def age(value_ms: float | None) -> str:
    """`320 ms`, `8.2 s`, `2 min`, `3.1 h`, `12 d`."""
    if value_ms is None:
        return DASH
    for limit, divisor, unit in ((1e3, 1, "ms"), (6e4, 1e3, "s"), (3.6e6, 6e4, "min"), (8.64e7, 3.6e6, "h")):
        if value_ms < limit:
            scaled = value_ms / divisor
            is_whole = unit == "ms" or scaled >= 10 or scaled == int(scaled)
            return f"{scaled:.{0 if is_whole else 1}f} {unit}"
    return f"{value_ms / 8.64e7:,.0f} d"


def moment(value_ms: int | None) -> str:
    """UTC with milliseconds; the number itself if it is outside of the calendar."""
    return DASH if value_ms is None else iso_text(value_ms).replace("T", " ").removesuffix("Z")


def setting_hint(name: str, value: str | None) -> str:
    """`7 d` for `retention.ms`, `1.1 GB` for `segment.bytes`; empty for small and special numbers."""
    if value is None or not value.isascii() or not value.isdecimal() or len(value) > 15 or int(value) < 1_000:
        return ""
    if name.endswith(".ms"):
        return age(int(value))
    return size(int(value)) if name.endswith(".bytes") else ""


class FormError(ValueError):
    """A form or a parameter that cannot be used; the message says why."""


def parse_number(text: str, name: str, least: int, most: int, default: int | None = None) -> int:
    """FormError unless the field is a whole number within the bounds, or empty with a default."""
    if not text and default is not None:
        return default
    digits = text.replace(",", "").removeprefix("-")
    if not (digits.isascii() and digits.isdecimal()) or len(digits) > 19:
        raise FormError(f"{name}: {text[:60]!r} is not a whole number")
    number = int(text.replace(",", ""))
    if not least <= number <= most:
        raise FormError(f"{name}: {number:,} is not between {least:,} and {most:,}")
    return number


def ranges(numbers: Iterable[int]) -> str:
    """`0–2, 4`: three numbers in a row, or more, as their first and last."""
    runs: list[list[int]] = []
    for each in sorted(numbers):
        if runs and each == runs[-1][-1] + 1:
            runs[-1].append(each)
        else:
            runs.append([each])
    return ", ".join(f"{run[0]}–{run[-1]}" if len(run) > 2 else ", ".join(map(str, run)) for run in runs)


def sparkline(values: Sequence[float | None]) -> str:
    """Points of a polyline in a box of 96 × 22, from the first value on; empty without two. Gaps keep the last one."""
    if sum(value is not None for value in values) < 2:
        return ""
    top = max(value for value in values if value is not None) or 1.0
    step = SPARK_WIDTH / (len(values) - 1)
    points = []
    last: float | None = None
    for index, value in enumerate(values):
        last = value if value is not None else last
        if last is not None:
            points.append(f"{index * step:.1f},{SPARK_HEIGHT - 1.5 - last / top * (SPARK_HEIGHT - 3):.1f}")
    return " ".join(points)


def has_words(text: str, search: str) -> bool:
    """Whether a text has all words of a search, in any case."""
    return all(word in text.lower() for word in search.lower().split())


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    rows: Sequence[T]
    number: int  # the first page is 1
    pages: int
    total: int

    def with_rows(self, rows: Sequence[R]) -> Page[R]:
        return Page(rows, self.number, self.pages, self.total)

    @property
    def first(self) -> int:
        return (self.number - 1) * PAGE_ROWS + 1 if self.rows else 0

    @property
    def last(self) -> int:
        return self.first + len(self.rows) - 1 if self.rows else 0


def page_of(rows: Sequence[T], number: int) -> Page[T]:
    """The page with this number, or the nearest that exists."""
    pages = max(1, -(-len(rows) // PAGE_ROWS))
    number = min(max(number, 1), pages)
    return Page(rows[(number - 1) * PAGE_ROWS : number * PAGE_ROWS], number, pages, len(rows))


FILTERS: dict[str, Callable[..., Any]] = {
    **{each.__name__: each for each in (number, offset, compact, rate, size, age, moment, setting_hint)},
    "plural": count_text,
}
