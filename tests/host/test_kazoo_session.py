"""A session by kazoo while its server is away, and after kazoo's own thread has ended."""

import asyncio
import struct
import threading
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Self

import pytest

from odradek.host.kazoo_session import KazooSession
from odradek.host.zookeeper import NoAnswer, SessionClosed, SessionEvent, ZooKeeperError, ZooKeeperSettings
from tests.host.scripted_zookeeper import ScriptedZooKeeper

WAIT_S = 30
ANSWER_TO_ANOTHER_REQUEST = struct.pack(">iqi", 99, 1, 0)
LONGEST_BLOCK_S = 3.0
ROUNDS, REQUESTS_PER_ROUND = 6, 100  # a socket takes less than 300 bytes that are sent one by one


@pytest.fixture
async def server() -> AsyncIterator[ScriptedZooKeeper]:
    async with ScriptedZooKeeper() as running:
        yield running


@pytest.fixture
async def session(server: ScriptedZooKeeper) -> AsyncIterator[KazooSession]:
    settings = ZooKeeperSettings(connect=server.connect, session_timeout_ms=500, connection_timeout_ms=WAIT_S * 1000)
    opened = KazooSession(settings)
    yield opened
    await opened.close()


class LoopWatch:
    """Notices from a thread that the event loop is blocked for long, and reads what kazoo's thread should have read, so
    that a blocked loop is a failure and not a test without end."""

    def __init__(self, session: KazooSession) -> None:
        self._session = session
        self._loop = asyncio.get_running_loop()
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self.has_blocked = False

    async def __aenter__(self) -> Self:
        self._thread.start()
        return self

    async def __aexit__(self, *_failure: object) -> None:
        self._is_over.set()
        await asyncio.to_thread(self._thread.join)  # it may wait for a turn of the loop

    def _watch(self) -> None:
        while not self._is_over.is_set():
            turned = threading.Event()
            self._loop.call_soon_threadsafe(turned.set)
            while not turned.wait(LONGEST_BLOCK_S):
                self.has_blocked = True
                self._session._client._connection._read_sock.recv(4096)
            self._is_over.wait(0.02)  # a poll's pause


def reach_state(session: KazooSession, wanted: SessionEvent) -> asyncio.Event:
    reached = asyncio.Event()
    session.subscribe(lambda event: reached.set() if event is wanted else None)
    return reached


async def lose(server: ScriptedZooKeeper, session: KazooSession) -> None:
    """Stop the server; the session has noticed it."""
    disconnected = reach_state(session, SessionEvent.DISCONNECTED)
    server.stop()
    async with asyncio.timeout(WAIT_S):
        await disconnected.wait()


async def test_event_loop_turns_however_many_requests_wait_for_a_server_that_is_away(
    server: ScriptedZooKeeper, session: KazooSession
) -> None:
    assert await session.exists("/node") is None
    await lose(server, session)
    async with LoopWatch(session) as watch:
        for _ in range(ROUNDS):
            answers = await asyncio.gather(
                *(session.exists("/node") for _ in range(REQUESTS_PER_ROUND)), return_exceptions=True
            )
            assert all(isinstance(each, NoAnswer) for each in answers)
    assert not watch.has_blocked
    assert not session._client._queue, "kazoo keeps no request for later"
    answered = server.requests
    await server.start()
    async with asyncio.timeout(WAIT_S):
        assert await _until_answered(session) is None
    assert server.requests - answered < REQUESTS_PER_ROUND, "requests whose callers have given up were sent"


async def test_full_wake_up_socket_does_not_block_the_event_loop(
    server: ScriptedZooKeeper, session: KazooSession
) -> None:
    """Between the loss of a connection and the event of it, requests reach kazoo. A session that is lost again and
    again adds to what kazoo's thread has not read."""
    await session.exists("/node")
    await lose(server, session)
    session._reachable.set()
    async with LoopWatch(session) as watch:
        for _ in range(ROUNDS):
            await asyncio.gather(*(session.exists("/node") for _ in range(REQUESTS_PER_ROUND)), return_exceptions=True)
        await session.close()
    assert not watch.has_blocked


async def test_requests_that_wait_for_a_server_end_when_the_session_is_closed(
    server: ScriptedZooKeeper, session: KazooSession
) -> None:
    await session.exists("/node")
    await lose(server, session)
    waiting = asyncio.ensure_future(session.exists("/node"))
    await asyncio.sleep(0)
    await session.close()
    with pytest.raises(SessionClosed):
        await waiting


async def test_watcher_that_watches_a_node_again_is_kept_once(session: KazooSession) -> None:
    has_changed, other = asyncio.Event(), asyncio.Event()
    for _ in range(3):
        await session.exists("/node", has_changed.set)
    await session.exists("/node", other.set)
    assert len(session._client._data_watchers["/node"]) == 2


async def _until_answered(session: KazooSession) -> object:
    while True:
        try:
            return await session.exists("/node")
        except ZooKeeperError:
            continue


async def test_session_begins_again_when_the_thread_of_its_client_has_ended(
    server: ScriptedZooKeeper, session: KazooSession
) -> None:
    """kazoo's thread ends with any exception that it does not expect, and when a connection is closed during SASL."""
    await session.exists("/node")
    first_id = session.session_id
    events: list[SessionEvent] = []
    session.subscribe(events.append)
    server.garbage = ANSWER_TO_ANOTHER_REQUEST
    async with asyncio.timeout(WAIT_S):
        assert await _until_answered(session) is None
    assert session.session_id not in (0, first_id)
    assert events == [SessionEvent.EXPIRED, SessionEvent.CONNECTED]


async def test_session_whose_client_has_ended_again_and_again_can_be_closed(
    server: ScriptedZooKeeper, session: KazooSession
) -> None:
    await session.exists("/node")
    for _ in range(2):
        ended = reach_state(session, SessionEvent.EXPIRED)
        server.garbage = ANSWER_TO_ANOTHER_REQUEST
        async with asyncio.timeout(WAIT_S):
            while not ended.is_set():
                with suppress(ZooKeeperError):
                    await session.exists("/node")
    await session.close()
    with pytest.raises(SessionClosed):
        await session.exists("/node")
