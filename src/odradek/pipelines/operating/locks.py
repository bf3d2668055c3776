"""One process at a time: a lock on a file, which the kernel lets go when its owner ends in whatever way."""

from __future__ import annotations

import fcntl
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


class Taken(Exception):
    """Somebody else holds the lock; `owner` is what they wrote into it."""

    def __init__(self, owner: str) -> None:
        super().__init__(owner)
        self.owner = owner


@contextmanager
def held(path: Path, owner: str) -> Iterator[None]:
    """The lock, with `owner` written into it for those who find it taken."""
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
