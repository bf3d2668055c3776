"""A broker process behind a faulty network: each request has a connection to itself while it is carried out."""

import asyncio
import struct

from odradek.testing import RunningBroker

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class BrokerProcess:
    def __init__(self, running: RunningBroker) -> None:
        self._running = running
        self._idle: list[Streams] = []

    async def handle(self, frame: bytes) -> bytes | None:
        streams: Streams | None = None
        try:
            streams = self._idle.pop() if self._idle else await self._connect()
            reader, writer = streams
            writer.write(struct.pack(">i", len(frame)) + frame)
            size = await reader.readexactly(4)
            answer = size + await reader.readexactly(struct.unpack(">i", size)[0])
        except (OSError, EOFError):
            if streams is not None:
                streams[1].close()
            return None
        self._idle.append(streams)
        return answer

    async def _connect(self) -> Streams:
        host, _, port = self._running.bootstrap_servers.rpartition(":")
        return await asyncio.open_connection(host, int(port))

    async def close(self) -> None:
        for _, writer in self._idle:
            writer.close()
        self._idle.clear()

    async def kill(self) -> None:
        await asyncio.to_thread(self._running.kill)
        await self.close()

    async def start(self) -> None:
        await asyncio.to_thread(self._running.start)
