"""Matching of patterns that clients choose, on a worker and one pattern at a time.

A pattern may take milliseconds for each name. The general pool of workers also commits metadata: patterns must not
occupy all of its threads. Few requests wait for their turn; others are answered with an error that clients retry.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeVar, TypeVarTuple

from odradek.host.worker_turns import WorkerTurns

if TYPE_CHECKING:
    from collections.abc import Callable

    from odradek.host.workers import WorkerPool

T = TypeVar("T")
Arguments = TypeVarTuple("Arguments")

MOST_WAITING_PATTERNS = 32


class PatternsStopped(Exception):
    """The broker stops, and the pattern was not matched."""


class PatternMatching:
    def __init__(self, workers: WorkerPool) -> None:
        self._workers = workers
        self._turns = WorkerTurns(MOST_WAITING_PATTERNS)
        self._is_closed = False

    @property
    def are_full(self) -> bool:
        """A request with a new pattern is refused; patterns of members are matched nevertheless."""
        return self._turns.are_full

    async def run(self, match: Callable[[*Arguments], T], *arguments: *Arguments) -> T:
        """PatternsStopped when the turns are closed first."""
        try:
            return await self._turns.run(lambda: self._workers.run(match, *arguments))
        except asyncio.CancelledError as problem:
            caller = asyncio.current_task()
            if not self._is_closed or (caller is not None and caller.cancelling()):
                raise
            raise PatternsStopped from problem

    def close(self) -> None:
        self._is_closed = True
        self._turns.close()
