"""A connection that ends in the turn of the event loop in which its request has arrived."""

import asyncio
import gc
import socket
import warnings
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from odradek.handlers.dispatch import AwaitedAnswer
from odradek.host.frame_buffer import ReceiveBuffers
from odradek.host.network import ShortAnswers
from odradek.server.connection import Connection


async def response() -> None:
    raise AssertionError("nobody waits for it")


@pytest.mark.parametrize("make", [lambda: AwaitedAnswer(SimpleNamespace(abandon=lambda: None), response()), response])  # type: ignore[arg-type]  # of a record, only this is called
def test_no_coroutine_is_left_behind(make: Callable[[], Any]) -> None:
    async def story() -> None:
        loop = asyncio.get_running_loop()
        owner: Any = SimpleNamespace(
            name="PLAINTEXT",
            clock=SimpleNamespace(monotonic_ms=lambda: 0.0),
            loop=loop,
            dispatcher=SimpleNamespace(
                handle=lambda _frame, _client, _now_ms: make(),
                begin_connection=lambda _client: None,
                end_connection=lambda _client: None,
            ),
            needs_authentication=False,
            watch=SimpleNamespace(add=lambda _connection: None, remove=lambda _connection: None),
            receive_buffers=ReceiveBuffers(),
            short_answers=ShortAnswers(),
            largest_frame_bytes=1000,
            connection_opened=lambda _connection: None,
            connection_closed=lambda _connection: None,
        )
        connection = Connection(owner)
        here, there = socket.socketpair()
        transport: Any = SimpleNamespace(
            get_extra_info={"socket": here}.get, is_closing=lambda: False, resume_reading=lambda: None
        )
        connection.connection_made(transport)
        frame = (20).to_bytes(4, "big") + bytes(20)
        connection.get_buffer(-1)[: len(frame)] = frame
        connection.buffer_updated(len(frame))
        connection.connection_lost(None)
        await asyncio.sleep(0)  # the cancelled task ends
        await asyncio.sleep(0)
        here.close()
        there.close()

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        asyncio.run(story())
        gc.collect()
    assert [str(each.message) for each in caught] == []
