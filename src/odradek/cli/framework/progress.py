"""Progress bars on standard error. Importing this module imports rich."""

from __future__ import annotations

import time
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING

from rich import progress
from rich.console import Console

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

REFRESH_S = 0.1


@contextmanager
def bytes_progress(description: str, total_bytes: int) -> Iterator[Callable[[int], None]]:
    """A bar over the bytes of a file. Yields a function that adds bytes; it is cheap enough to be called per line."""
    done_bytes = 0
    with _progress(
        description,
        total_bytes,
        progress.DownloadColumn(),
        progress.TransferSpeedColumn(),
        progress.TimeRemainingColumn(),
    ) as update:

        def advance(size_bytes: int) -> None:
            nonlocal done_bytes
            done_bytes += size_bytes
            update(done_bytes)

        yield advance


def count_progress(description: str, total: int | None) -> AbstractContextManager[Callable[[int], None]]:
    """A bar over a number of records, with their rate. Its value is a function that takes the number so far."""
    counts = [progress.MofNCompleteColumn()] if total else []
    return _progress(description, total, *counts, progress.TextColumn("{task.fields[rate]}"))


@contextmanager
def _progress(
    description: str, total: int | None, *columns: progress.ProgressColumn
) -> Iterator[Callable[[int], None]]:
    begin = (
        progress.TextColumn("{task.description}"),
        progress.BarColumn(bar_width=None),
        progress.TaskProgressColumn(),
    )
    bar = progress.Progress(
        *begin, *columns, progress.TimeElapsedColumn(), console=Console(stderr=True), refresh_per_second=8, expand=True,
        transient=True,
    )  # fmt: skip
    task = bar.add_task(description, total=total, rate="")
    began_at = shown_at = time.monotonic()

    def update(done: int) -> None:
        nonlocal shown_at
        now = time.monotonic()
        if now - shown_at >= REFRESH_S:
            shown_at = now
            bar.update(task, completed=done, rate=f"{done / (now - began_at):,.0f}/s")

    with bar:
        yield update
