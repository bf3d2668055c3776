"""A TCP proxy before a ZooKeeper server that loses one request or one answer, and with it the connection.

It reads the lengths, ids and types of the protocol's frames, and nothing else of them.
"""

import asyncio
import enum
import struct
from types import TracebackType
from typing import Self

MULTI = 14
_LENGTH = struct.Struct(">i")
_HEADER = struct.Struct(">ii")


class Loss(enum.Enum):
    REQUEST = enum.auto()
    ANSWER = enum.auto()  # after the server has carried out the request


class ZooKeeperProxy:
    """`lose` arms it for the next `multi`; `losses` counts what was lost."""

    def __init__(self, host: str, port: int) -> None:
        self._target = host, port
        self._server: asyncio.Server | None = None
        self._loss: Loss | None = None
        self._lost_xid: int | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self.losses = 0
        self.port = 0

    @property
    def connect(self) -> str:
        return f"127.0.0.1:{self.port}"

    def lose(self, loss: Loss) -> None:
        self._loss = loss

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, limit=4 << 20)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        assert self._server is not None
        self._server.close()
        for writer in self._writers:
            writer.transport.abort()

    async def _serve(self, client_reader: asyncio.StreamReader, client_writer: asyncio.StreamWriter) -> None:
        server_reader, server_writer = await asyncio.open_connection(*self._target)
        self._writers |= {client_writer, server_writer}
        self._lost_xid = None
        try:
            directions = (
                asyncio.ensure_future(self._forward(client_reader, server_writer, is_request=True)),
                asyncio.ensure_future(self._forward(server_reader, client_writer, is_request=False)),
            )
            await asyncio.wait(directions, return_when=asyncio.FIRST_COMPLETED)
            for direction in directions:
                direction.cancel()
        finally:
            for writer in (client_writer, server_writer):
                writer.transport.abort()

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, is_request: bool) -> None:
        is_first = True  # the connection's own exchange has no ids
        while True:
            try:
                head = await reader.readexactly(_LENGTH.size)
                frame = await reader.readexactly(_LENGTH.unpack(head)[0])
            except (asyncio.IncompleteReadError, ConnectionError):
                return
            if not is_first and self._is_lost(frame, is_request=is_request):
                self.losses += 1
                return
            is_first = False
            writer.write(head + frame)

    def _is_lost(self, frame: bytes, *, is_request: bool) -> bool:
        xid, kind = _HEADER.unpack_from(frame)
        if not is_request:
            return bool(xid == self._lost_xid)
        if kind != MULTI or self._loss is None:
            return False
        loss, self._loss = self._loss, None
        if loss is Loss.ANSWER:
            self._lost_xid = xid
        return loss is Loss.REQUEST
