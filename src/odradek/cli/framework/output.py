"""Output of commands: aligned columns and sentences as text, or one JSON object per line.

Columns are never cut to the width of the terminal, so that output can be searched and piped.
"""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def print_json(value: Any) -> None:
    """One object, one line."""
    click.echo(json.dumps(value, ensure_ascii=False, separators=(",", ":")))


def say(text: str = "") -> None:
    click.echo(text)


def note(text: str) -> None:
    """Print a note to standard error, which is not part of the output that a program reads."""
    click.echo(click.style(text, dim=True), err=True)


def note_missing(missing: Mapping[int, str], subject: str) -> None:
    """Say which brokers did not answer, so that a list lacks theirs."""
    for broker_id, reason in sorted(missing.items()):
        note(f"broker {broker_id} lists no {subject}: {reason}")


def strong(text: str) -> str:
    return click.style(text, bold=True)


def faint(text: str) -> str:
    return click.style(text, dim=True)


def print_columns(titles: Sequence[str], rows: Sequence[Sequence[object]], *, indent: str = "") -> None:
    for line in column_lines(titles, rows, indent=indent):
        say(line)


def column_lines(titles: Sequence[str], rows: Sequence[Sequence[object]], *, indent: str = "") -> list[str]:
    """A table: numbers aligned right, text aligned left."""
    cells = [["" if cell is None else str(cell) for cell in row] for row in rows]
    widths = [
        max(len(title), *(len(row[i]) for row in cells)) if cells else len(title) for i, title in enumerate(titles)
    ]
    numeric = [bool(rows) and all(isinstance(row[i], int | float | None) for row in rows) for i in range(len(titles))]
    numeric = [is_number or title in RIGHT_ALIGNED for is_number, title in zip(numeric, titles, strict=True)]

    def line(row: Sequence[str]) -> str:
        padded = [
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(row, widths, numeric, strict=True)
        ]
        return (indent + "  ".join(padded)).rstrip()

    return [strong(line(titles)), *map(line, cells)]


VALUE_CHARACTERS = 200
RIGHT_ALIGNED = frozenset({"SIZE", "EARLIEST", "LATEST", "COMMITTED", "END", "LAG", "TIME LAG", "BEFORE", "CHANGE"})


def count_text(count: float, noun: str) -> str:
    """`1 record`, `12,000 records`."""
    return f"{count:,.0f} {noun}{'' if round(count) == 1 else 's'}"


def duration_text(duration_ms: float) -> str:
    if duration_ms < 10:
        return f"{duration_ms:.2f} ms"
    if duration_ms < 1000:
        return f"{duration_ms:.1f} ms"
    return f"{duration_ms / 1000:.2f} s"


AGE_UNITS = ((86_400, "d", 3600, "h"), (3600, "h", 60, "min"), (60, "min", 1, "s"))


def age_text(age_ms: int) -> str:
    """`320 ms`, `8.2 s`, `2 min 3 s`, `3 h 5 min`, `12 d 4 h`: the two largest units."""
    seconds = age_ms // 1000
    for unit_s, unit, finer_s, finer in AGE_UNITS:
        if seconds >= unit_s:
            rest = seconds % unit_s // finer_s
            return f"{seconds // unit_s:,} {unit}" + (f" {rest} {finer}" if rest else "")
    if seconds:
        return f"{age_ms // 100 / 10:.1f} s"
    return f"{age_ms} ms" if age_ms else "0 s"


def offset_range_text(earliest: int, latest: int) -> str:
    """`offsets 0–9, next 10` for a log that begins at `earliest` and whose next record gets offset `latest`."""
    if earliest >= latest:
        return "empty" if not latest else f"empty, next {latest}"
    held = f"offset {earliest}" if earliest + 1 == latest else f"offsets {earliest}–{latest - 1}"
    return f"{held}, next {latest}"


def one_line(text: str | None) -> str:
    """A value of a record on one line: control characters escaped, long values cut."""
    if text is None:
        return "null"
    if not text.isprintable():
        text = text.encode("unicode_escape").decode()
    return text if len(text) <= VALUE_CHARACTERS else text[: VALUE_CHARACTERS - 1] + "…"


def shows_progress() -> bool:
    """Whether to draw progress: it goes to standard error, and only to a terminal."""
    return sys.stderr.isatty()
