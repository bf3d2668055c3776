"""Requests with many elements are handled a part at a time, so that requests of others are handled in between.

For APIs that change nothing and whose response has an entry for each element of the request. The parts see the state of
the broker at different times, as smaller requests would.
"""

from __future__ import annotations

import asyncio
import inspect
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable

    from odradek.handlers.context import RequestContext

    Handle = Callable[[Any, RequestContext], Any]

T = TypeVar("T")

ELEMENTS_PER_TURN = 500


async def each_in_turn(elements: Iterable[T]) -> AsyncIterator[T]:
    for number, element in enumerate(elements, start=1):
        yield element
        if number % ELEMENTS_PER_TURN == 0:
            await asyncio.sleep(0)


def in_turns(handle: Handle, request_field: str, response_field: str) -> Handle:
    """A handler that handles the elements of `request_field` in parts, of which each gives its part of
    `response_field`."""

    def handle_in_turns(request: Any, context: RequestContext) -> Any:
        elements = getattr(request, request_field)
        if elements is None or len(elements) <= ELEMENTS_PER_TURN:
            return handle(request, context)
        return handle_parts(request, context, elements)

    async def handle_parts(request: Any, context: RequestContext, elements: list[Any]) -> Any:
        whole: Any = None
        for start in range(0, len(elements), ELEMENTS_PER_TURN):
            setattr(request, request_field, elements[start : start + ELEMENTS_PER_TURN])
            response = handle(request, context)
            while inspect.isawaitable(response):
                response = await response
            if whole is None:
                whole = response
            else:
                getattr(whole, response_field).extend(getattr(response, response_field))
            await asyncio.sleep(0)
        return whole

    return handle_in_turns
