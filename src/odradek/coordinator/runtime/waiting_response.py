"""A response that a handler awaits, and that a rule or the runtime fills in."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from odradek.protocol.errors import ErrorCode

T = TypeVar("T")
R = TypeVar("R")


class WaitingResponse:
    """A `Waiter` with a future. The client may be gone when the answer comes: its connection cancels the future."""

    __slots__ = ("_refusal", "future")

    def __init__(self, refusal: Callable[[ErrorCode], Any]) -> None:
        self._refusal = refusal
        self.future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

    def __call__(self, response: Any) -> None:
        if not self.future.done():
            self.future.set_result(response)

    def refuse(self, error: ErrorCode) -> None:
        self(self._refusal(error))

    def result(self) -> Any:
        """The response if it is there, otherwise its future."""
        return self.future.result() if self.future.done() else self.future


def join_answers(parts: Sequence[T | Awaitable[T]], combine: Callable[[list[T]], R]) -> R | Awaitable[R]:
    """One response out of parts of which some may have to wait."""
    if any(isinstance(part, asyncio.Future) for part in parts):
        return _join_later(parts, combine)
    return combine(parts)  # type: ignore[arg-type]  # none of them is awaitable


async def _join_later(parts: Sequence[T | Awaitable[T]], combine: Callable[[list[T]], R]) -> R:
    return combine([await part if isinstance(part, asyncio.Future) else part for part in parts])  # type: ignore[misc]
