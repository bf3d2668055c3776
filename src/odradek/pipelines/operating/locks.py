"""A file lock for one process at a time; the kernel releases it when the process ends."""

from __future__ import annotations

import fcntl
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


class Taken(Exception):
    """Another process holds the lock; `owner` is the text that it wrote into the file."""

    def __init__(self, owner: str) -> None:
        super().__init__(owner)
        self.owner = owner


@contextmanager
def held(path: Path, owner: str) -> Iterator[None]:
    """Holds the lock and writes `owner` into the file; raises `Taken` if another process holds it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+", encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            raise Taken(file.read().strip()) from None
        file.truncate(0)
        file.write(owner)
        file.flush()
        yield
