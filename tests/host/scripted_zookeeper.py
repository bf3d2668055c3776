"""A server that speaks just enough of ZooKeeper's protocol for a kazoo client to connect: it opens sessions, and it
answers pings and `exists`. It can be stopped and started, and can answer with garbage. It keeps no nodes."""

import asyncio
import struct
from contextlib import suppress
from types import TracebackType
from typing import Self

PING_XID = -2
NO_NODE = -101
NEGOTIATED_TIMEOUT_MS = 30_000
_LENGTH = struct.Struct(">i")
_REQUEST_HEADER = struct.Struct(">ii")
_SESSION = struct.Struct(">iiqi16s?")
_ANSWER = struct.Struct(">iqi")


class ScriptedZooKeeper:
    """`garbage` is sent in place of the answer to the next request that is not a ping."""

    def __init__(self) -> None:
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self.garbage: bytes | None = None
        self.sessions = 0
        self.requests = 0
        self.port = 0

    @property
    def connect(self) -> str:
        return f"127.0.0.1:{self.port}"

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    def stop(self) -> None:
        assert self._server is not None
        self._server.close()
        for writer in self._writers:
            writer.transport.abort()
        self._writers.clear()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            await _read_frame(reader)
            self.sessions += 1
            _write_frame(
                writer, struct.pack(">iiqi16s?", 0, NEGOTIATED_TIMEOUT_MS, self.sessions, 16, bytes(16), False)
            )
            while True:
                self._answer(writer, await _read_frame(reader))
        writer.close()

    def _answer(self, writer: asyncio.StreamWriter, frame: bytes) -> None:
        xid, _kind = _REQUEST_HEADER.unpack_from(frame)
        if xid == PING_XID:
            _write_frame(writer, _ANSWER.pack(xid, 1, 0))
            return
        self.requests += 1
        garbage, self.garbage = self.garbage, None
        _write_frame(writer, _ANSWER.pack(xid, 1, NO_NODE) if garbage is None else garbage)


async def _read_frame(reader: asyncio.StreamReader) -> bytes:
    return await reader.readexactly(_LENGTH.unpack(await reader.readexactly(_LENGTH.size))[0])


def _write_frame(writer: asyncio.StreamWriter, frame: bytes) -> None:
    writer.write(_LENGTH.pack(len(frame)) + frame)
