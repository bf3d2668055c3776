"""Requests whose outcome is written to the audit log, or decides what counts for a quota, run to their end, although
their clients disconnect.

A change that was handed to the controller or to a coordinator is made whether its client waits or not, so the line that
reports it and the quota that it counts for must not depend on the client's connection.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Awaitable, Coroutine

T = TypeVar("T")

MOST_RUNNING = 200
"""Requests beyond this number are cancelled with their connections, so that clients that disconnect cannot make them
pile up. Their lines say that the outcome is unknown."""


class AuditedRequests:
    def __init__(self) -> None:
        self._running: set[asyncio.Task[Any]] = set()
        self._kept: set[asyncio.Task[Any]] = set()

    def begin(self, request: Coroutine[Any, Any, T]) -> Awaitable[T]:
        """The request begins at once, and its result can be awaited."""
        task = asyncio.get_running_loop().create_task(request)
        if len(self._running) >= MOST_RUNNING:
            return task
        self._running.add(task)
        task.add_done_callback(self._ended)
        return _result(task)

    def keep(self, task: asyncio.Task[Any]) -> None:
        """A task that has lost its client runs to its end or that of the broker. The caller bounds the number."""
        self._kept.add(task)
        task.add_done_callback(self._kept.discard)

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._running.discard(task)
        if not task.cancelled():
            task.exception()  # the line has it, if no client awaits the result

    async def close(self) -> None:
        """Cancel the requests that run."""
        tasks = self._running | self._kept
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)


async def _result(task: asyncio.Task[T]) -> T:
    await asyncio.wait((task,))  # does not cancel the task with the caller
    return task.result()
