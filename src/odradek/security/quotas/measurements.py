"""The measurements of those who share a quota: as many as there are active clients, and never more than a limit. Pure.

A client chooses its client id, so it can invent new ones. A measurement that has not been used for its time is
dropped. When there are as many as the limit allows, all further clients share one measurement, so that inventing names
neither takes memory nor escapes the quota.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

MOST_MEASUREMENTS = 10_000
SHORTEST_SWEEP_INTERVAL_MS = 1_000


class Measurement(Protocol):
    def is_forgotten(self, now_ms: int) -> bool: ...


M = TypeVar("M", bound=Measurement)


class Measurements(Generic[M]):
    __slots__ = ("_limit", "_make", "_shared", "_swept_ms", "by_key")

    def __init__(self, make: Callable[[], M], limit: int = MOST_MEASUREMENTS) -> None:
        self._make = make
        self._limit = limit
        self.by_key: dict[Hashable, M] = {}
        """Callers on hot paths read it without a method call; `get` adds a missing measurement."""
        self._shared: M | None = None
        self._swept_ms = 0

    def __len__(self) -> int:
        return len(self.by_key)

    def get(self, key: Hashable, now_ms: int) -> M:
        found = self.by_key.get(key)
        if found is not None:
            return found
        self._sweep(now_ms)
        if len(self.by_key) < self._limit:
            made = self.by_key[key] = self._make()
            return made
        if self._shared is None:
            self._shared = self._make()
        return self._shared

    def _sweep(self, now_ms: int) -> None:
        """A new client pays for it, at most once in an interval."""
        if now_ms - self._swept_ms < SHORTEST_SWEEP_INTERVAL_MS:
            return
        self._swept_ms = now_ms
        for key in [key for key, each in self.by_key.items() if each.is_forgotten(now_ms)]:
            del self.by_key[key]
