"""Progress bars on standard error. Importing this module imports rich."""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

REFRESH_S = 0.1


def stderr_progress(*columns: ProgressColumn) -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=None),
        TaskProgressColumn(),
        *columns,
        TimeElapsedColumn(),
        console=Console(stderr=True),
        refresh_per_second=8,
        expand=True,
        transient=True,
    )


@contextmanager
def bytes_progress(description: str, total_bytes: int) -> Iterator[Callable[[int], None]]:
    """A bar over the bytes of a file. Yields a function that adds bytes; it is cheap enough to be called per line."""
    progress = stderr_progress(DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
    task = progress.add_task(description, total=total_bytes)
    gathered = 0
    shown_at = time.monotonic()

    def advance(size_bytes: int) -> None:
        nonlocal gathered, shown_at
        gathered += size_bytes
        if gathered > 65536 and time.monotonic() - shown_at > REFRESH_S:
            progress.advance(task, gathered)
            gathered, shown_at = 0, time.monotonic()

    with progress:
        yield advance


@contextmanager
def count_progress(description: str, total: int | None) -> Iterator[Callable[[int], None]]:
    """A bar over a number of records, with their rate. Yields a function that takes the number so far."""
    progress = stderr_progress(*([MofNCompleteColumn()] if total else []), TextColumn("{task.fields[rate]}"))
    task = progress.add_task(description, total=total, rate="")
    began_at = shown_at = time.monotonic()

    def update(done: int) -> None:
        nonlocal shown_at
        now = time.monotonic()
        if now - shown_at >= REFRESH_S:
            shown_at = now
            progress.update(task, completed=done, rate=f"{done / (now - began_at):,.0f}/s")

    with progress:
        yield update
