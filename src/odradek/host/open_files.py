"""A bound on the number of open files: the holder that has not used its file for the longest time closes it.

The clock algorithm instead of an LRU list: a use sets a mark on the holder, and costs nothing here. Holders drop only
their own reference, so a reader keeps its file, which is closed with the last reference."""

from collections import deque
from contextlib import suppress
from typing import Protocol

ENOUGH_TRIES = 64  # then a file is closed though it was used: the search runs on the event loop


class FileHolder(Protocol):
    def give_back(self, *, even_if_used: bool) -> bool:
        """Drop the file, unless it was used since the last call; whether the holder has no file afterwards."""


class OpenFiles:
    __slots__ = ("_holders", "limit")

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._holders: deque[FileHolder] = deque()

    def opened(self, holder: FileHolder) -> None:
        """The holder opened its file. Called from the event loop and from workers: each step is atomic."""
        self._holders.append(holder)
        tries = 0
        with suppress(IndexError):  # another thread was faster
            while len(self._holders) > self.limit:
                tries += 1
                oldest = self._holders.popleft()
                if not oldest.give_back(even_if_used=tries > ENOUGH_TRIES):
                    self._holders.append(oldest)

    def __len__(self) -> int:
        """An upper bound of the number of open files: holders may have closed theirs."""
        return len(self._holders)
