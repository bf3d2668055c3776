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
