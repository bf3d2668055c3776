"""TLS between a socket's transport and a protocol: for the protocol it is a transport, for the transport a protocol.

Handshakes run in turn on a thread of their own, because a signature takes up to some milliseconds, and must end within
HANDSHAKE_TIMEOUT_S; the thread does not preempt the event loop when it wakes up. Encrypted bytes are received into one
buffer that all connections of a listener share, and decrypted where the protocol wants them. A connection that is
paused keeps at most one receive of encrypted bytes.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, cast

from odradek.host.network import ShortAnswers
from odradek.host.thread_priority import become_batch_thread
from odradek.host.tls_writer import StagingBuffer, TlsWriter

if TYPE_CHECKING:
    from collections.abc import Callable

HANDSHAKE_TIMEOUT_S = 10.0
HANDSHAKE_THREADS = 1  # a second one would take the other processor of a small machine from the event loop
RECORD_HEADER_BYTES = 5
RECEIVE_BYTES = 64 << 10  # encrypted bytes received at once
FIRST_RECEIVE_BYTES = 4 << 10  # until the handshake is done
MOST_RECORDS_WITHOUT_DATA = 100  # of a connection, its handshake included: each key update takes 0.1 ms
LARGEST_ANSWER_BYTES = 64 << 10  # what a peer may make the TLS object send (tickets, key updates) before it reads


class TlsResources:
    """What some TLS connections of a process share: the thread of their handshakes, and buffers."""

    __slots__ = ("_threads", "received", "staging")

    def __init__(self) -> None:
        self._threads: ThreadPoolExecutor | None = None
        self.received = memoryview(bytearray(RECEIVE_BYTES))
        self.staging = StagingBuffer()

    @property
    def threads(self) -> ThreadPoolExecutor:
        if self._threads is None:
            self._threads = ThreadPoolExecutor(
                HANDSHAKE_THREADS, thread_name_prefix="odradek-handshake", initializer=become_batch_thread
            )
        return self._threads

    def close(self) -> None:
        if self._threads is not None:
            self._threads.shutdown(wait=False, cancel_futures=True)


class RecordCount:
    """Counts the records of an encrypted stream by their headers, which are not encrypted."""

    __slots__ = ("_header", "_until_header_bytes", "records")

    def __init__(self) -> None:
        self.records = 0
        self._header = b""  # as much of the next one as has arrived
        self._until_header_bytes = 0

    def add(self, data: memoryview, most: int) -> int:
        """Count up to `most` records; the position behind them, or the end of the data."""
        position, end, last = self._until_header_bytes, len(data), self.records + most
        while position < end and self.records < last:
            rest = data[position : position + RECORD_HEADER_BYTES - len(self._header)]
            self._header += rest
            position += len(rest)
            if len(self._header) == RECORD_HEADER_BYTES:
                self.records += 1
                position += int.from_bytes(self._header[3:], "big")
                self._header = b""
        fed = min(position, end)
        self._until_header_bytes = position - fed
        return fed


class TlsConnection(asyncio.BufferedProtocol):
    def __init__(
        self,
        protocol: asyncio.BufferedProtocol,
        context: ssl.SSLContext,
        resources: TlsResources,
        loop: asyncio.AbstractEventLoop,
        *,
        on_secured: Callable[[bytes | None], None],
        on_failed: Callable[[str], None],
        on_lost: Callable[[], None] = lambda: None,
        server_hostname: str | None = None,
        is_server: bool = True,
    ) -> None:
        """`on_secured` gets the verified certificate of the peer in DER form, or None, before the protocol gets any
        bytes. `on_failed` gets the reason when the handshake or the decryption failed; the connection then ends."""
        self._protocol = protocol
        self._on_secured = on_secured
        self._on_failed = on_failed
        self._on_lost = on_lost
        self._resources = resources
        self._loop = loop
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._tls = context.wrap_bio(
            self._incoming, self._outgoing, server_side=is_server, server_hostname=server_hostname
        )
        self._step: asyncio.Future[bool] | None = None  # of the handshake, on its thread or waiting for it
        self._is_secured = False
        self._count = RecordCount()
        self._reads = 0  # at least one for each record with data
        self.is_held = False
        """Whether the handshake waits for `release`."""
        self._is_paused = False
        self._is_reading_scheduled = False
        self._is_lost = False
        self._is_ended = False  # the peer was notified that nothing more comes
        self._writer: TlsWriter | None = None

    # --- asyncio.BufferedProtocol, called by the transport of the socket

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._deadline = self._loop.call_later(HANDSHAKE_TIMEOUT_S, self._handshake_too_slow)
        self._protocol.connection_made(cast("asyncio.BaseTransport", self))
        if self._writer is None:
            self.open_writer(ShortAnswers(), _ignore, self._output_failed)
        if not self._tls.server_side and not self._transport.is_closing():
            self._continue_handshake()

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002 - asyncio's signature
        received = self._resources.received
        return received if self._is_secured else received[:FIRST_RECEIVE_BYTES]

    def buffer_updated(self, nbytes: int) -> None:
        """The TLS object gets few records at once: it does not return between key updates."""
        data = self._resources.received[:nbytes]
        while data and not self._transport.is_closing():
            position = self._count.add(data, MOST_RECORDS_WITHOUT_DATA)
            self._incoming.write(data[:position])
            data = data[position:]
            if self._is_secured:
                self._read()
        if self._is_secured or self._transport.is_closing():
            return
        if self.is_held:
            self._transport.pause_reading()  # uvloop begins to read after `connection_made`, where `hold` is called
        else:
            self._continue_handshake()

    def eof_received(self) -> bool:
        self._protocol.eof_received()
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self._is_lost = True
        self._deadline.cancel()
        if self._step is not None:
            self._step.cancel()  # a step that waits for the thread is not run
        self._output.close()
        self._protocol.connection_lost(exc)
        self._on_lost()

    # --- the handshake

    def hold(self) -> None:
        """Begin no handshake, and keep at most one receive of bytes; for a connection that is not secured."""
        self.is_held = True
        self._deadline.cancel()

    def release(self) -> None:
        if self.is_held and not self._is_lost and not self._transport.is_closing():
            self.is_held = False
            self._deadline = self._loop.call_later(HANDSHAKE_TIMEOUT_S, self._handshake_too_slow)
            if self._incoming.pending:
                self._continue_handshake()

    def _continue_handshake(self) -> None:
        """Run one step on the thread, which owns the TLS object until it is done: reading pauses. So each connection
        has at most one step waiting, and the queue is no longer than the limits of connections allow."""
        self._transport.pause_reading()
        self._step = self._loop.run_in_executor(self._resources.threads, _handshake_step, self._tls)
        self._step.add_done_callback(self._handshake_continued)

    def _handshake_continued(self, step: asyncio.Future[bool]) -> None:
        self._step = None
        if self._is_lost or self._transport.is_closing() or step.cancelled():
            return
        failure = step.exception()
        self._output.send_pending()  # of a failed handshake this is the alert that says why
        if failure is not None:
            self._fail(handshake_failure_text(failure))
        elif not step.result():
            self._transport.resume_reading()
        else:
            self._secure()

    def _secure(self) -> None:
        self._deadline.cancel()
        self._is_secured = True
        certificate = self._tls.getpeercert(binary_form=True)
        self._on_secured(certificate)
        if not self._is_paused and not self._transport.is_closing():
            self._transport.resume_reading()
            self._read()  # records that came with the last message of the handshake

    def _handshake_too_slow(self) -> None:
        self._fail(f"the TLS handshake took longer than {HANDSHAKE_TIMEOUT_S:g} s")

    def _fail(self, reason: str) -> None:
        self._on_failed(reason)
        self._transport.close()

    # --- reading

    def _read(self) -> None:
        """Decrypt into the protocol's buffer, until there is nothing more or the protocol pauses."""
        protocol, read = self._protocol, cast("Callable[[int, memoryview], int]", self._tls.read)
        try:
            while not self._is_paused and not self._transport.is_closing():
                buffer = cast("memoryview", protocol.get_buffer(-1))
                count, is_more, reads = _fill(read, buffer)
                self._reads += reads
                if count:
                    protocol.buffer_updated(count)
                if is_more is None:
                    self.close()
                    return
                if not is_more:
                    break
        except ssl.SSLError as problem:
            self._on_failed(handshake_failure_text(problem))
            self._transport.abort()
            return
        if not self._is_paused and self._count.records - self._reads > MOST_RECORDS_WITHOUT_DATA:
            self._on_failed("TLS: too many records without data")
            self._transport.abort()
        elif self._outgoing.pending and not self._is_lost:
            self._answer_tls()

    def _answer_tls(self) -> None:
        if self._outgoing.pending > LARGEST_ANSWER_BYTES:
            self._transport.abort()
        else:
            self._output.send_pending()

    def _read_again(self) -> None:
        self._is_reading_scheduled = False
        if not self._is_paused and not self._is_lost and not self._transport.is_closing():
            self._read()
            if not self._is_paused and not self._transport.is_closing():
                self._transport.resume_reading()

    # --- the transport of the protocol

    def open_writer(
        self, short_answers: ShortAnswers, on_progress: Callable[[], None], on_failed: Callable[[OSError], None]
    ) -> TlsWriter:
        """The one writer of this connection. The protocol opens it in `connection_made`, or uses `write`."""
        self._writer = TlsWriter(
            self._transport,
            self._loop,
            short_answers,
            on_progress,
            on_failed,
            self._tls,
            self._outgoing,
            self._resources.staging,
        )
        return self._writer

    @property
    def _output(self) -> TlsWriter:
        if self._writer is None:
            raise RuntimeError("the connection is not open")
        return self._writer

    def write(self, data: bytes) -> None:
        self._output.write([data])

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return self._transport.get_extra_info(name, default)

    def is_closing(self) -> bool:
        return self._transport.is_closing()

    def pause_reading(self) -> None:
        self._is_paused = True
        if self._is_secured:
            self._transport.pause_reading()

    def resume_reading(self) -> None:
        self._is_paused = False
        if self._is_secured and not self._is_reading_scheduled:
            self._is_reading_scheduled = True
            self._loop.call_soon(self._read_again)  # not at once: the protocol calls this while it handles frames

    def close(self) -> None:
        self._notify_peer()
        self._transport.close()

    def abort(self) -> None:
        self._notify_peer()
        self._transport.abort()

    def _notify_peer(self) -> None:
        """Send the alert by which the peer learns that nothing was cut off, unless a response is on its way."""
        if self._is_secured and not self._is_ended and self._output.is_drained and not self._transport.is_closing():
            self._is_ended = True
            with contextlib.suppress(ssl.SSLError):  # it always waits for the peer's alert, which nothing needs
                self._tls.unwrap()
            self._output.send_pending()

    def _output_failed(self, error: OSError) -> None:  # noqa: ARG002 - the reason of a lost connection
        self._transport.abort()


def _ignore() -> None:
    pass


def _handshake_step(tls: ssl.SSLObject) -> bool:
    """Whether the handshake is done. Runs on a thread."""
    try:
        tls.do_handshake()
    except ssl.SSLWantReadError:
        return False
    return True


def _fill(read: Callable[[int, memoryview], int], buffer: memoryview) -> tuple[int, bool | None, int]:
    """Decrypt into the buffer; how many bytes, whether there may be more (None when the peer has closed), and the
    number of reads."""
    position, end, reads = 0, len(buffer), 0
    try:
        while position < end:
            count = read(end - position, buffer[position:])
            if count == 0:
                return position, None, reads
            position += count
            reads += 1
    except ssl.SSLWantReadError:
        return position, False, reads
    except ssl.SSLZeroReturnError:
        return position, None, reads
    return position, True, reads


def handshake_failure_text(problem: BaseException) -> str:
    if isinstance(problem, ssl.SSLCertVerificationError):
        return f"certificate not accepted: {problem.verify_message}"
    if isinstance(problem, ssl.SSLError) and problem.reason:
        return f"TLS: {problem.reason.lower().replace('_', ' ')}"
    return f"TLS: {problem}"
