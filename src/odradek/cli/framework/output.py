"""Output of commands: aligned columns and sentences as text, or one JSON object per line; errors as one line.

Columns are never cut to the width of the terminal, so that output can be searched and piped.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, Self, TypeVar

import click

from odradek.cli.framework.interrupt import stop_on_interrupt
from odradek.conventions.failures import ERROR, PROGRAM, Failure

if TYPE_CHECKING:
    from rich.text import Text

_T = TypeVar("_T")


def print_json(value: Any) -> None:
    """One object, one line."""
    click.echo(json.dumps(value, ensure_ascii=False, separators=(",", ":")))


def print_result(value: Any, text: str, *, as_json: bool) -> None:
    """What a command did: as an object or in words."""
    print_json(value) if as_json else say(text)


def print_list(
    values: Iterable[Any], titles: Sequence[str], rows: Sequence[Sequence[object]] | None = None, *, otherwise: str,
    as_json: bool,
) -> None:  # fmt: skip
    """What a command lists: an object each or a row each, by default of the values of its object; `otherwise` is said
    in words if there is none."""
    if rows is None:
        values = list(values)
        rows = [list(value.values()) for value in values]
    if as_json:
        for value in values:
            print_json(value)
    elif rows:
        print_columns(titles, rows)
    else:
        say(otherwise)


def print_each(
    objects: Iterable[_T], as_object: Callable[[_T], Any], show: Callable[[_T], None], *, as_json: bool
) -> None:
    """What a command describes: an object each, or texts with a blank line between them."""
    for number, each in enumerate(objects):
        if as_json:
            print_json(as_object(each))
            continue
        if number:
            say()
        show(each)


def fields_of(value: object, names: str) -> dict[str, Any]:
    """The attributes with these names, which blanks separate, for an object of the JSON output."""
    return {name: getattr(value, name) for name in names.split()}


def values_of(value: object, names: str) -> list[Any]:
    """The same for a row of a table."""
    return list(fields_of(value, names).values())


def joined(values: Iterable[object]) -> str:
    """`1,2,3`, or `-` if there are none."""
    return ",".join(map(str, values)) or "-"


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
    widths = [max([len(title), *(len(row[i]) for row in cells)]) for i, title in enumerate(titles)]
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


@contextmanager
def progress_bar(label: str, total: int | None) -> Iterator[Callable[[int], None]]:
    """A bar on a terminal, if the total is known. Yields a cheap function for the progress since its last call."""
    if not total or not shows_progress():
        yield lambda _done: None
        return
    steps = max(total // 500, 1)
    with click.progressbar(length=total, label=label, file=sys.stderr, update_min_steps=steps, show_pos=True) as bar:
        yield bar.update


def redraw(line: str = "") -> None:
    """Draw the line of progress again, or clear it."""
    click.echo(f"\r{line}\x1b[K", nl=False, err=True)


def report_error(message: str) -> None:
    """Print `odradek: error: …` as one line on standard error."""
    line = " ".join(message.split())
    click.echo(f"{PROGRAM} {click.style(ERROR, fg='red', bold=True)} {line}", err=True)


def raise_all(failures: Sequence[Failure]) -> None:
    """Raise one Failure with the messages of all, if there are any."""
    if failures:
        raise Failure("; ".join(failure.message for failure in failures))


def watch(interval_s: float, read: Callable[[], tuple[Any, list[str]]], *, as_json: bool) -> None:
    """Show what `read` returns, an object or lines, until Ctrl-C. On a terminal lines are drawn in place; those from
    before a Failure stay."""
    is_stopped = threading.Event()
    screen = live_lines(as_json=as_json)
    lines: list[str] = []
    with stop_on_interrupt(is_stopped), screen or nullcontext():
        while not is_stopped.is_set():
            began_at = time.monotonic()
            trouble = ""
            try:
                value, lines = read()
            except Failure as failure:
                value, trouble = {"error": failure.message}, failure.message
            if screen is None:
                print_result(value, trouble or "\n".join([*lines, ""]), as_json=as_json)
            else:
                moment = faint(f"{time.strftime('%H:%M:%S')}, every {interval_s:g} s; Ctrl-C stops")
                screen.draw([*lines, "", click.style(trouble, fg="red") if trouble else moment])
            is_stopped.wait(max(interval_s - (time.monotonic() - began_at), 0))


def live_lines(*, as_json: bool) -> LiveLines | None:
    """None without a terminal, and for JSON."""
    return LiveLines() if sys.stdout.isatty() and not as_json else None


class LiveLines:
    """Lines in place, cut to the width and the height of the terminal. The last drawing stays on the screen."""

    def __init__(self) -> None:
        from rich.live import Live

        self._live = Live(auto_refresh=False, vertical_overflow="ellipsis")

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(self, *_exception: object) -> None:
        self._live.stop()

    def draw(self, lines: Sequence[str]) -> None:
        self._live.update(cut_text(lines), refresh=True)


def cut_text(lines: Sequence[str]) -> Text:
    """Lines that are cut to the width of the terminal. They may contain the colours of `click.style`."""
    from rich.text import Text

    return Text.from_ansi("\n".join(lines), no_wrap=True, overflow="ellipsis")
