"""Connections of the console that send no complete request, or read no response, are closed: they count against one
limit, before any login."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any, ClassVar

import pytest
import uvicorn
from uvicorn.server import ServerState

from odradek.console.cluster.connection import Cluster
from odradek.console.context import Console, Threads, TooManyStreams
from odradek.console.server import BoundedConnection, ProxiedConnection
from odradek.console.settings import ConsoleSettings

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

HEAD = b"GET / HTTP/1.1\r\nhost: console\r\n"
LARGE = 16 << 20  # more than the buffers of a connection hold
MOST = 2


class QuickConnection(BoundedConnection):
    head_timeout_s = body_timeout_s = write_timeout_s = 0.2
    most_of_address: ClassVar[int | None] = MOST
    is_lost: ClassVar[asyncio.Event]

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self.is_lost.set()


class QuickProxiedConnection(QuickConnection, ProxiedConnection):
    most_of_address = ProxiedConnection.most_of_address


async def app(scope: Any, receive: Any, send: Any) -> None:
    """Answers when it has read the whole body."""
    while (message := await receive()).get("more_body"):
        pass
    if message["type"] == "http.disconnect":
        return
    body = bytes(LARGE) if scope["path"] == "/large" else b"complete"
    head = [(b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": head})
    await send({"type": "http.response.body", "body": body})


@contextlib.asynccontextmanager
async def served(protocol: type[BoundedConnection]) -> AsyncIterator[int]:
    config = uvicorn.Config(app, http=protocol, log_config=None, lifespan="off", timeout_keep_alive=60)
    config.load()
    state = ServerState()
    QuickConnection.is_lost = asyncio.Event()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: protocol(config, state, {}), "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for connection in list(state.connections):
            connection.transport.abort()
        await server.wait_closed()


async def is_closed(reader: asyncio.StreamReader) -> bool:
    try:
        async with asyncio.timeout(10):
            return await reader.read() == b""
    except ConnectionResetError:
        return True


@pytest.mark.parametrize(
    "sent",
    [b"", b"GET / HTTP/1.1\r\nhost: con", b"POST / HTTP/1.1\r\nhost: console\r\ncontent-length: 100\r\n\r\nuser=a"],
    ids=["nothing", "half a head", "half a form"],
)
def test_a_request_that_does_not_become_complete_ends(sent: bytes) -> None:
    async def run() -> None:
        async with served(QuickConnection) as port:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(sent)
            assert await is_closed(reader)
            writer.close()

    asyncio.run(run())


@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize(
    "second",
    [b"GET / HTTP/1.1\r\nhost: con", b"POST / HTTP/1.1\r\nhost: console\r\ncontent-length: 100\r\n\r\nuser=a"],
    ids=["half a head", "half a form"],
)
def test_a_request_that_does_not_become_complete_ends_behind_complete_ones(count: int, second: bytes) -> None:
    async def run() -> None:
        async with served(QuickConnection) as port:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(count * (HEAD + b"\r\n") + second)
            async with asyncio.timeout(10):
                for _ in range(count):
                    await reader.readuntil(b"complete")
            assert await is_closed(reader)
            writer.close()

    asyncio.run(run())


def test_a_client_that_sends_byte_by_byte_gets_no_more_time() -> None:
    async def run() -> None:
        async with served(QuickConnection) as port:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            with contextlib.suppress(ConnectionError):
                async with asyncio.timeout(10):
                    while not reader.at_eof():
                        writer.write(b"x")
                        await writer.drain()
                        with contextlib.suppress(TimeoutError):
                            await asyncio.wait_for(reader.read(1), 0.02)
            writer.close()

    asyncio.run(run())


def test_a_connection_is_used_again_after_a_complete_request() -> None:
    async def run() -> None:
        async with served(QuickConnection) as port:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            for _ in range(3):
                writer.write(HEAD)
                writer.write(b"\r\n")
                async with asyncio.timeout(10):
                    assert b"complete" in await reader.readuntil(b"complete")
            writer.write(HEAD)
            assert await is_closed(reader), "the next head is not complete"
            writer.close()

    asyncio.run(run())


def test_a_client_that_does_not_read_its_response_is_closed() -> None:
    async def run() -> None:
        async with served(QuickConnection) as port:
            _, writer = await asyncio.open_connection("127.0.0.1", port, limit=1024)  # it reads no more than this
            writer.write(HEAD.replace(b"/ ", b"/large ", 1) + b"\r\n")
            async with asyncio.timeout(10):
                await QuickConnection.is_lost.wait()
            writer.transport.abort()

    asyncio.run(run())


@pytest.mark.parametrize(("protocol", "served_count"), [(QuickConnection, MOST), (QuickProxiedConnection, MOST + 1)])
def test_one_address_has_a_part_of_the_connections(protocol: type[BoundedConnection], served_count: int) -> None:
    async def run() -> None:
        async with served(protocol) as port:
            streams = [await asyncio.open_connection("127.0.0.1", port) for _ in range(MOST + 1)]
            answers = 0
            for reader, writer in streams:
                with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
                    writer.write(HEAD + b"\r\n")
                    async with asyncio.timeout(10):
                        answers += bool(await reader.readuntil(b"complete"))
            for _, writer in streams:
                writer.close()
            assert answers == served_count

    asyncio.run(run())


def test_a_session_updates_a_bounded_number_of_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("odradek.console.context.PAGE_STREAMS", MOST)
    threads = Threads()
    cluster = Cluster("127.0.0.1:1", {})
    console = Console(ConsoleSettings(), cluster, None, threads)  # type: ignore[arg-type]  # not used here

    async def events() -> AsyncIterator[bytes]:
        yield b"first"
        await asyncio.Event().wait()

    async def run() -> None:
        pages = [console.update_page(events()) for _ in range(MOST)]
        for page in pages:
            assert await anext(page) == b"first"
        with pytest.raises(TooManyStreams):
            console.update_page(events())
        await pages[0].aclose()  # type: ignore[attr-defined]  # it is a generator
        assert await anext(console.update_page(events())) == b"first"

    asyncio.run(run())
    assert not cluster.is_stopped()
    threads.begin_stop()
    assert cluster.is_stopped(), "readings of pages end before their threads are waited for"
    threads.stop()
