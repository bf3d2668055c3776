"""A bound on the files that are open: whoever has not used its file for the longest time gives it back.

Like a clock's hand, not a list in order of use: a use costs a mark on the holder, and nothing here. Holders only drop
their own reference, so whoever is still reading keeps the file, and it closes with the last of them."""

from collections import deque
from contextlib import suppress
from typing import Protocol

ENOUGH_TRIES = 64  # with so many in use one of them must go, used or not: the search is on the event loop


class FileHolder(Protocol):
    def give_back(self, *, even_if_used: bool) -> bool:
        """Drops the file, unless it was used since the last time of asking; whether there is none left to drop."""


class OpenFiles:
    __slots__ = ("_holders", "limit")

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._holders: deque[FileHolder] = deque()

    def opened(self, holder: FileHolder) -> None:
        """It has just opened its file. Called from the event loop and from workers: each step is one operation."""
        self._holders.append(holder)
        tries = 0
        with suppress(IndexError):  # another thread was faster
            while len(self._holders) > self.limit:
                tries += 1
                oldest = self._holders.popleft()
                if not oldest.give_back(even_if_used=tries > ENOUGH_TRIES):
                    self._holders.append(oldest)

    def __len__(self) -> int:
        """At most so many are open: some may have been given back by themselves."""
        return len(self._holders)
