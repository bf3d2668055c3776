"""Collects all metrics of a broker: first what must be counted for it, then the samples of every source."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from odradek.metrics.registry import MetricsRegistry
    from odradek.metrics.samples import Family


class MetricsCollection:
    def __init__(self, registry: MetricsRegistry) -> None:
        self._registry = registry
        self.prepare: Callable[[], None] | None = None
        """Called first: may add sources, and what must be awaited before."""
        self._refreshes: list[Callable[[], Awaitable[None]]] = []

    def before(self, refresh: Callable[[], Awaitable[None]]) -> None:
        """Await this before samples are collected."""
        self._refreshes.append(refresh)

    async def collect(self, prefixes: Sequence[str] = ()) -> list[Family]:
        if self.prepare is not None:
            self.prepare()
        for refresh in self._refreshes:
            await refresh()
        return self._registry.collect(prefixes)
