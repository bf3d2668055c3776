"""Requests with many elements are handled a part at a time, so that requests of others are handled in between.

For APIs whose response has an entry for each element of the request, and that change nothing or each element by itself.
The parts see the state of the broker at different times, as smaller requests would. Limits hold for the whole request:
a handler keeps their state outside of the turns.
"""

from __future__ import annotations

import asyncio
import inspect
from typing import TYPE_CHECKING, TypeVar

from odradek.coordinator.runtime.waiting_response import join_answers

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable

T = TypeVar("T")
Part = TypeVar("Part")
R = TypeVar("R")

ELEMENTS_PER_TURN = 500


async def each_in_turn(elements: Iterable[T]) -> AsyncIterator[T]:
    for number, element in enumerate(elements, start=1):
        yield element
        if number % ELEMENTS_PER_TURN == 0:
            await asyncio.sleep(0)


def answer_in_turns(
    elements: Collection[T],
    answer: Callable[[T], Part | Awaitable[Part]],
    combine: Callable[[list[Part]], R],
    count: Callable[[T], int] = lambda _: 1,
) -> R | Awaitable[R]:
    """One response out of the answers to all elements; at once if they are few. `count` is how many elements of a turn
    an element stands for."""
    if len(elements) <= ELEMENTS_PER_TURN and sum(map(count, elements)) <= ELEMENTS_PER_TURN:
        return join_answers([answer(each) for each in elements], combine)
    return _answer_later(elements, answer, combine, count)


async def _answer_later(
    elements: Collection[T],
    answer: Callable[[T], Part | Awaitable[Part]],
    combine: Callable[[list[Part]], R],
    count: Callable[[T], int],
) -> R:
    parts = []
    left = ELEMENTS_PER_TURN
    for element in elements:
        left -= count(element)
        if left < 0:
            await asyncio.sleep(0)
            left = ELEMENTS_PER_TURN - count(element)
        parts.append(answer(element))
    await asyncio.sleep(0)
    response = join_answers(parts, combine)
    return await response if inspect.isawaitable(response) else response
