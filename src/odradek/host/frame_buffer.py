"""Splits a connection's byte stream into frames, with few copies and memory in proportion to the received bytes.

All connections receive into one shared buffer. Only a connection with an unfinished frame owns memory, which grows with
the bytes that have arrived, never with the size that the peer declared, and within a budget that all connections share.
Does no I/O.
"""

from __future__ import annotations

import mmap
import struct
from typing import TYPE_CHECKING, NoReturn

from odradek.host.receive_budget import TURN_BYTES, ReceiveBudget, Share

if TYPE_CHECKING:
    from collections.abc import Callable

# Much larger than one receive, so that most frames are complete in it and need not be moved.
SHARED_BYTES = 8 << 20
LAZY_BYTES = 128 << 10  # buffers from this size on are mapped
SMALLEST_OWN_BYTES = 4 << 10
HANDED_OVER_BYTES = 64 << 10  # above this size, handing over the buffer costs less than copying
MOST_HANDED_OVER = 4
# Buffers that are kept for later: one of SHARED_BYTES, and smaller ones, which are resident: they are not mapped, or
# were written to.
POOLED_SMALL_BYTES = 4 << 20
POOLED_BYTES = SHARED_BYTES + POOLED_SMALL_BYTES
SIZE_BYTES = 4
SMALLEST_REQUEST_BYTES = 8  # API key, version, correlation id
SMALLEST_RESPONSE_BYTES = 4  # correlation id

_NO_MEMORY = memoryview(b"")
_unpack_size = struct.Struct(">i").unpack_from


class InvalidFrameSize(ValueError):
    """The declared size of a frame is invalid or exceeds the limit."""


class ReceiveBuffers:
    """The broker's receive memory: the shared buffer, and a bounded pool of returned buffers.

    New memory costs a page fault per 4 KiB, about as much as receiving into it; the pool avoids that.
    """

    __slots__ = ("_free", "_free_bytes", "_free_small_bytes", "_handed_over", "budget", "shared")

    def __init__(self, budget: ReceiveBudget | None = None) -> None:
        self.budget = budget or ReceiveBudget()
        self.shared = _new_memory(SHARED_BYTES)
        self._free: list[memoryview] = []
        self._free_bytes = 0
        self._free_small_bytes = 0
        self._handed_over: set[int] = set()

    def hand_over(self) -> bool:
        """Gives the shared buffer to the caller until it is returned; False if too many are handed out.

        The number is limited because a buffer is much larger than its content: a thousand slow clients must not
        hold a thousand buffers."""
        if len(self._handed_over) >= MOST_HANDED_OVER:
            return False
        self._handed_over.add(id(self.shared))
        self.shared = self.take(SHARED_BYTES)
        return True

    def take(self, size_bytes: int) -> memoryview:
        for place, buffer in enumerate(self._free):
            if size_bytes <= len(buffer) <= 4 * size_bytes:  # a large buffer is not used for a few bytes
                del self._free[place]
                self._count_free(buffer, -1)
                return buffer
        return _new_memory(1 << (size_bytes - 1).bit_length())

    def give(self, buffer: memoryview) -> None:
        if id(buffer) in self._handed_over:
            # It is shared again: its pages are in memory, so that the next large frame takes none of another buffer.
            self._handed_over.discard(id(buffer))
            buffer, self.shared = self.shared, buffer
        size_bytes = len(buffer)
        if size_bytes <= SMALLEST_OWN_BYTES or self._free_bytes + size_bytes > POOLED_BYTES:
            return
        if size_bytes < SHARED_BYTES and self._free_small_bytes + size_bytes > POOLED_SMALL_BYTES:
            return
        self._free.append(buffer)
        self._count_free(buffer, 1)

    def _count_free(self, buffer: memoryview, sign: int) -> None:
        self._free_bytes += sign * len(buffer)
        if len(buffer) < SHARED_BYTES:
            self._free_small_bytes += sign * len(buffer)


def _new_memory(size_bytes: int) -> memoryview:
    """Allocates a buffer; large ones are mapped, so that only pages that were written to use memory."""
    return memoryview(mmap.mmap(-1, size_bytes) if size_bytes >= LAZY_BYTES else bytearray(size_bytes))


class FrameBuffer:
    """One connection's unread bytes.

    The owner calls `writable`, lets the socket fill it, calls `filled`, then `next_frame` until it returns None, and
    `settle` before the shared buffer may be used by another connection.
    """

    __slots__ = (
        "_budget",
        "_buffer",
        "_buffers",
        "_end_position",
        "_is_own",
        "_share",
        "_smallest_frame_bytes",
        "_start_position",
        "largest_frame_bytes",
    )

    def __init__(
        self,
        buffers: ReceiveBuffers,
        largest_frame_bytes: int,
        smallest_frame_bytes: int = SMALLEST_REQUEST_BYTES,
        resume: Callable[[], None] = lambda: None,
    ) -> None:
        """`resume` is called when `may_read` was False and is True."""
        self._buffers = buffers
        self._budget = buffers.budget
        self._share = Share(resume)
        self.largest_frame_bytes = largest_frame_bytes
        self._smallest_frame_bytes = smallest_frame_bytes
        self._buffer = buffers.shared
        self._is_own = False
        self._start_position = 0
        self._end_position = 0

    def set_owner(self, address: str) -> None:
        """The client's address, which shares memory with its other connections. Called before the first read."""
        self._share.owner = address

    @property
    def unread_bytes(self) -> int:
        return self._end_position - self._start_position

    def writable(self) -> memoryview:
        """The memory for the next bytes; never empty."""
        turn_bytes = self._budget.turn_of(self._share) if self._budget.is_short else TURN_BYTES
        if not self._is_own:
            self._buffer = self._buffers.shared  # the shared buffer may have been replaced
        elif self._share.is_granted:
            turn_bytes = min(TURN_BYTES, self.missing_bytes)
            if self._end_position + turn_bytes > len(self._buffer):
                self._make_room()
        elif self._end_position == len(self._buffer):
            self._make_room()
        return self._buffer[self._end_position : self._end_position + turn_bytes]

    def filled(self, size_bytes: int) -> None:
        self._end_position += size_bytes

    def next_frame(self) -> memoryview | None:
        """The next complete frame without its size; valid until the next `settle`, `writable` or `next_frame`."""
        start = self._start_position
        available = self._end_position - start
        if available < SIZE_BYTES:
            return None
        buffer = self._buffer
        (size,) = _unpack_size(buffer, start)  # `_declared_size`, inlined: this runs for every request
        if not self._smallest_frame_bytes <= size <= self.largest_frame_bytes:
            self._refuse(size)
        if available - SIZE_BYTES < size:
            return None
        begin = start + SIZE_BYTES
        self._start_position = end = begin + size
        return buffer[begin:end]

    def settle(self) -> bool:
        """Moves remaining bytes out of the shared buffer, or returns an owned buffer once it is empty. Returns whether
        there are unread bytes."""
        if self._start_position == self._end_position:
            if self._is_own:
                self._buffers.give(self._buffer)
                self._is_own = False
                self._budget.release(self._share)
            self._start_position = self._end_position = 0
            self._buffer = _NO_MEMORY  # an idle connection must not keep a buffer in memory that nobody uses
            return False
        if not self._is_own:
            wanted_bytes = self._wanted_bytes()
            # Another buffer is shared if one was returned while the frames of this connection were handled.
            is_shared = self._buffer is self._buffers.shared
            if self.unread_bytes < HANDED_OVER_BYTES or not is_shared or not self._buffers.hand_over():
                self._move_to(self._buffers.take(wanted_bytes))
            self._is_own = True
        self._budget.charge(self._share, self.unread_bytes)
        return True

    def may_read(self) -> bool:
        """After `settle`, for a connection with an incomplete frame that would read on."""
        return self._budget.may_read(self._share, self.unread_bytes, self.missing_bytes)

    @property
    def missing_bytes(self) -> int:
        """How much of the frame has not arrived."""
        unread = self.unread_bytes
        if unread < SIZE_BYTES:
            return SIZE_BYTES - unread
        return SIZE_BYTES + self._declared_size(self._start_position) - unread

    @property
    def is_waiting(self) -> bool:
        """Whether the connection has to wait for memory."""
        return self._budget.is_waiting(self._share)

    @property
    def delays_others(self) -> bool:
        """Whether other connections wait while this one has memory that counts."""
        return (self._share.is_granted or self._share.charged_bytes > 0) and self._budget.has_waiting

    @property
    def received_bytes(self) -> int:
        """The bytes of the frame that came since its memory was granted, or since it began."""
        return self._share.missing_bytes - self.missing_bytes if self._share.is_granted else self.unread_bytes

    def release(self) -> None:
        """Returns the connection's memory when it is closed."""
        self._start_position = self._end_position
        self.settle()

    def _declared_size(self, position: int) -> int:
        size: int = _unpack_size(self._buffer, position)[0]
        if not self._smallest_frame_bytes <= size <= self.largest_frame_bytes:
            self._refuse(size)
        return size

    def _refuse(self, size: int) -> NoReturn:
        raise InvalidFrameSize(
            f"a frame of {size} bytes was declared; socket.request.max.bytes is {self.largest_frame_bytes}"
        )

    def _wanted_bytes(self) -> int:
        """The size to allocate: that of the frame, but at most four times the received bytes, unless the memory for the
        whole frame was granted."""
        unread = self.unread_bytes
        if unread < SIZE_BYTES:
            return SMALLEST_OWN_BYTES
        whole = SIZE_BYTES + self._declared_size(self._start_position)
        if self._share.is_granted:
            return whole
        return max(min(whole, 4 * unread), SMALLEST_OWN_BYTES, unread + 1)

    def _make_room(self) -> None:
        wanted = self._wanted_bytes()
        old = self._buffer
        if self._start_position and wanted <= len(old):
            unread = self.unread_bytes
            old[:unread] = old[self._start_position : self._end_position]
            self._start_position, self._end_position = 0, unread
            return
        self._move_to(self._buffers.take(wanted))
        self._buffers.give(old)

    def _move_to(self, target: memoryview) -> None:
        unread = self.unread_bytes
        target[:unread] = self._buffer[self._start_position : self._end_position]
        self._buffer = target
        self._start_position, self._end_position = 0, unread
