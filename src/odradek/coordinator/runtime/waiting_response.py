"""A response that a handler waits for, and that a rule or the runtime fills in."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator, Sequence

    from odradek.protocol.errors import ErrorCode

T = TypeVar("T")
R = TypeVar("R")


class WaitingResponse:
    """A `Waiter` for one request. Its response is passed on in the call that fills it in (`then`), so that a request
    that waits costs no task and no turn of the event loop; it can be awaited as well. The client may be gone when the
    response comes: its connection cancels it.

    Functions given to `map` and `then` run inside the coordinator. They must not send requests to it.
    """

    __slots__ = ("_at_end", "_convert", "_is_done", "_refusal", "_response", "_then")

    def __init__(self, refusal: Callable[[ErrorCode], Any]) -> None:
        self._refusal: Callable[[ErrorCode], Any] | None = refusal
        self._is_done = False
        self._response: Any = None
        self._convert: Callable[[Any], Any] | None = None
        self._then: Callable[[Any], None] | None = None
        self._at_end: Callable[[], None] | None = None

    def __call__(self, response: Any) -> None:
        if self._is_done:
            return
        self._is_done = True
        if self._at_end is not None:
            self._at_end()
        if self._convert is not None:
            try:
                response = self._convert(response)
            except Exception as problem:  # of the request alone: the coordinator goes on
                response = problem
        self._response = response
        if self._then is not None:
            self._then(response)

    def refuse(self, error: ErrorCode) -> None:
        if not self._is_done:
            assert self._refusal is not None
            self(self._refusal(error))

    def cancel(self) -> None:
        """The coordinator may keep this object for longer: what its functions refer to is released."""
        if self._is_done:
            return
        self._is_done = True
        self._refusal = self._convert = self._then = None
        if self._at_end is not None:
            self._at_end()

    def at_end(self, release: Callable[[], None]) -> WaitingResponse:
        """Call this function once, when the response comes or is cancelled."""
        self._at_end = release
        return self

    def result(self) -> Any:
        """The response if it is there, otherwise this object, of which it can be had."""
        return self._response if self._is_done else self

    def map(self, convert: Callable[[Any], Any]) -> WaitingResponse:
        """Convert the response, or the refusal, when it comes. An exception takes the place of the response."""
        earlier = self._convert
        self._convert = convert if earlier is None else lambda response: convert(earlier(response))
        return self

    def then(self, receive: Callable[[Any], None]) -> None:
        """Pass the response, or the exception of a conversion, to this function when it comes."""
        assert not self._is_done
        assert self._then is None
        self._then = receive

    def __await__(self) -> Generator[Any, None, Any]:
        if not self._is_done:
            future = asyncio.get_running_loop().create_future()
            self.then(lambda _: None if future.done() else future.set_result(None))
            yield from future.__await__()
        if isinstance(self._response, Exception):
            raise self._response
        return self._response


def map_answer(answer: T | WaitingResponse, convert: Callable[[T], R]) -> R | WaitingResponse:
    """Convert an answer that is there at once, and one that waits when it comes."""
    return answer.map(convert) if isinstance(answer, WaitingResponse) else convert(answer)


def join_answers(parts: Sequence[T | Awaitable[T]], combine: Callable[[list[T]], R]) -> R | Awaitable[R]:
    """One response out of parts of which some may have to wait."""
    if any(isinstance(part, WaitingResponse) for part in parts):
        return _join_later(parts, combine)
    return combine(parts)  # type: ignore[arg-type]  # none of them is awaitable


async def _join_later(parts: Sequence[T | Awaitable[T]], combine: Callable[[list[T]], R]) -> R:
    answers = [await part if isinstance(part, WaitingResponse) else part for part in parts]
    return combine(answers)  # type: ignore[arg-type]  # none of the others is awaitable
