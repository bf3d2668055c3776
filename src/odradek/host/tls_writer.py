"""The output side of a TLS connection: encrypts pieces of bounded size and sends them, with the turns of SocketWriter.

File bytes are read from the page cache into one buffer that all connections of a listener share, encrypted into the
memory of the TLS object, and sent. A connection keeps at most one encrypted piece that the socket has not taken.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, cast

from odradek.host.network import SocketWriter, ended_early
from odradek.host.slices import FileSlice

if TYPE_CHECKING:
    import asyncio
    import ssl
    from collections import deque
    from collections.abc import Callable

    from odradek.host.network import ShortAnswers

PIECE_BYTES = 64 << 10  # plain bytes that are encrypted at once


class StagingBuffer:
    """Memory for file bytes between the page cache and the TLS object; used within one call only."""

    __slots__ = ("memory",)

    def __init__(self) -> None:
        self.memory = memoryview(bytearray(PIECE_BYTES))


class _Encrypted:
    """Encrypted bytes at the head of the queue."""

    __slots__ = ("data",)

    def __init__(self, data: memoryview) -> None:
        self.data = data


class TlsWriter(SocketWriter):
    """Like SocketWriter. `unsent` holds plain parts, and at its head the encrypted piece that is on its way."""

    __slots__ = ("_outgoing", "_staging", "_tls")

    def __init__(
        self,
        transport: asyncio.BaseTransport,
        loop: asyncio.AbstractEventLoop,
        short_answers: ShortAnswers,
        on_progress: Callable[[], None],
        on_failed: Callable[[OSError], None],
        tls: ssl.SSLObject,
        outgoing: ssl.MemoryBIO,
        staging: StagingBuffer,
    ) -> None:
        super().__init__(transport, loop, short_answers, on_progress, on_failed)
        self._tls = tls
        self._outgoing = outgoing
        self._staging = staging

    def send_pending(self) -> None:
        """Send what the TLS object has produced by itself: handshake messages, alerts, session tickets."""
        if not self._outgoing.pending:
            return
        queue = cast("deque[Any]", self.unsent)
        if queue and isinstance(queue[0], _Encrypted):
            return  # it follows the piece that is on its way
        queue.appendleft(_Encrypted(memoryview(self._outgoing.read())))
        if not self._is_watching and not self.is_resting:
            self._send_queued()

    def _send_small(self, data: bytes) -> None:
        self.unsent.append(memoryview(data))
        self._send_if_idle()

    def _send_first(self, parts: deque[memoryview | FileSlice], budget: int) -> int:
        queue = cast("deque[Any]", parts)
        first = queue[0]
        if not isinstance(first, _Encrypted):
            self._encrypt_piece(queue, budget)
            first = queue[0]
        data = first.data
        sent = self._socket.send(data)
        if sent < len(data):
            first.data = data[sent:]
        elif self._outgoing.pending:
            first.data = memoryview(self._outgoing.read())
        else:
            queue.popleft()
        return sent

    def _encrypt_piece(self, queue: deque[Any], budget: int) -> None:
        """Encrypt parts from the head of the queue, up to a limit, and put the encrypted bytes there."""
        room = min(PIECE_BYTES, budget)
        while queue and room > 0:
            part = queue[0]
            size_bytes = min(len(part), room)
            if isinstance(part, FileSlice):
                plain = self._staging.memory[:size_bytes]
                count = os.preadv(part.file.descriptor, [plain], part.position)
                if count == 0:
                    raise ended_early(part.size_bytes)
                plain, size_bytes = plain[:count], count
                rest: memoryview | FileSlice = FileSlice(part.file, part.position + count, part.size_bytes - count)
            else:
                plain, rest = part[:size_bytes], part[size_bytes:]
            self._encrypt(plain)
            room -= size_bytes
            if len(rest):
                queue[0] = rest
            else:
                queue.popleft()
        queue.appendleft(_Encrypted(memoryview(self._outgoing.read())))

    def _encrypt(self, plain: memoryview) -> None:
        write, position, end = self._tls.write, 0, len(plain)
        while position < end:
            position += write(plain[position:])  # one TLS record at a time
