"""Responses that wait, and responses that are joined of parts that wait."""

from __future__ import annotations

import asyncio

from odradek.coordinator.runtime.waiting_response import WaitingResponse, join_answers
from odradek.protocol.errors import ErrorCode


def test_a_response_is_given_at_once_or_by_its_future() -> None:
    async def scenario() -> None:
        early, late = WaitingResponse(str), WaitingResponse(str)
        early("now")
        assert early.result() == "now"
        future = late.result()
        late("later")
        assert await future == "later"

    asyncio.run(scenario())


def test_a_refusal_is_the_response_that_the_handler_makes_of_the_error() -> None:
    async def scenario() -> None:
        waiting = WaitingResponse(lambda error: f"refused: {error.name}")
        waiting.refuse(ErrorCode.NOT_COORDINATOR)
        assert waiting.result() == "refused: NOT_COORDINATOR"

    asyncio.run(scenario())


def test_an_answer_to_a_client_that_is_gone_is_dropped() -> None:
    async def scenario() -> None:
        waiting = WaitingResponse(str)
        waiting.future.cancel()
        waiting("response")
        assert waiting.future.cancelled()

    asyncio.run(scenario())


def test_parts_are_joined_in_their_order_when_the_last_is_there() -> None:
    async def scenario() -> None:
        assert join_answers([1, 2], sum) == 3
        waiting = WaitingResponse(str)
        joined = asyncio.ensure_future(join_answers([1, waiting.result(), 3], list))  # type: ignore[arg-type]
        await asyncio.sleep(0)
        assert not joined.done()
        waiting(2)
        assert await joined == [1, 2, 3]

    asyncio.run(scenario())
