"""Responses that wait, and responses that are joined of parts that wait."""

import asyncio
import weakref

import pytest

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
        waiting, received = WaitingResponse(str), list[str]()
        waiting.then(received.append)
        waiting.cancel()
        waiting("response")
        waiting.refuse(ErrorCode.NOT_COORDINATOR)
        awaited = WaitingResponse(str)
        task = asyncio.ensure_future(awaited)
        await asyncio.sleep(0)
        task.cancel()
        awaited("response")
        assert received == []
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(scenario())


def test_a_response_that_is_cancelled_keeps_nothing_of_its_request() -> None:
    class Request:
        def refusal(self, error: ErrorCode) -> str:
            return str(error)

    request = Request()
    waiting, kept = WaitingResponse(request.refusal), weakref.ref(request)
    waiting.cancel()
    del request
    assert kept() is None


def test_a_response_is_converted_and_passed_on_in_the_call_that_gives_it() -> None:
    waiting, received = WaitingResponse(str), list[object]()
    assert waiting.map(lambda number: number + 1).map(lambda number: number * 10).result() is waiting
    waiting.then(received.append)
    waiting(3)
    waiting(4)
    assert received == [40]


def test_an_exception_of_a_conversion_concerns_its_request_alone() -> None:
    async def scenario() -> None:
        waiting, awaited, received = WaitingResponse(str), WaitingResponse(str), list[object]()
        waiting.map(lambda _: 1 / 0).then(received.append)
        awaited.map(lambda _: 1 / 0)
        waiting(1)
        awaited(1)
        assert isinstance(received[0], ZeroDivisionError)
        with pytest.raises(ZeroDivisionError):
            await awaited

    asyncio.run(scenario())


def test_parts_are_joined_in_their_order_when_the_last_is_there() -> None:
    async def scenario() -> None:
        assert join_answers([1, 2], sum) == 3
        waiting = WaitingResponse(str)
        joined = asyncio.ensure_future(join_answers([1, waiting.result(), 3], list))  # type: ignore[arg-type]  # parts of both kinds
        await asyncio.sleep(0)
        assert not joined.done()
        waiting(2)
        assert await joined == [1, 2, 3]

    asyncio.run(scenario())
