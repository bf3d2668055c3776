"""The limit of memory for requests that are incomplete, or wait to be handled, over all connections. Pure.

Bytes of incomplete frames count, beyond FREE_BYTES for each connection, and so do copies of requests that wait for a
worker. While there is room, a connection reads as much as there is room for. When there is none, a connection reads
FREE_BYTES, which is a whole request of most kinds, and one whose frame is longer waits. The first that waits is granted
the rest of its frame when there is room for it, or when no other connection reads beyond the limit. So one connection
always makes progress, whatever the size of its frame is, and it delays no frame that there is room for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

FREE_BYTES = 4 << 10
TURN_BYTES = 1 << 20  # read from one connection before others are served
UNLIMITED_BYTES = 2**63 - 1


class Share:
    """What one connection uses of the budget, which alone changes it."""

    __slots__ = ("charged_bytes", "is_granted", "missing_bytes", "resume")

    def __init__(self, resume: Callable[[], None]) -> None:
        """`resume` is called when a connection that had to wait may read."""
        self.resume = resume
        self.charged_bytes = 0
        self.missing_bytes = 0
        """Of the frame, when the connection began to wait."""
        self.is_granted = False
        """Whether the connection may read the rest of its frame."""


class ReceiveBudget:
    __slots__ = ("_beyond", "_copied_bytes", "_limit_bytes", "_used_bytes", "_waiting", "turn_bytes")

    def __init__(self, limit_bytes: int = 0) -> None:
        """0 or less is no limit."""
        self._limit_bytes = limit_bytes if limit_bytes > 0 else UNLIMITED_BYTES
        self._used_bytes = 0  # charged to shares, and copied
        self._copied_bytes = 0
        self._waiting: dict[Share, None] = {}  # in the order in which they began to wait
        self._beyond: Share | None = None  # which reads beyond the limit, and is charged nothing
        self.turn_bytes = self._next_turn_bytes()
        """How much a connection without a grant may read at once."""

    @property
    def used_bytes(self) -> int:
        return self._used_bytes

    @property
    def has_waiting(self) -> bool:
        return bool(self._waiting)

    def is_waiting(self, share: Share) -> bool:
        return share in self._waiting

    def charge(self, share: Share, unread_bytes: int) -> None:
        """The connection has this many bytes in memory. A grant was charged for the whole frame."""
        if share is self._beyond:
            return
        charged_bytes = max(unread_bytes - FREE_BYTES, share.charged_bytes if share.is_granted else 0)
        self._used_bytes += charged_bytes - share.charged_bytes
        share.charged_bytes = charged_bytes
        self._grant()

    def may_read(self, share: Share, unread_bytes: int, missing_bytes: int) -> bool:
        """Whether a connection with an incomplete frame may read on. If not, it waits."""
        is_free = unread_bytes < FREE_BYTES or (not self._waiting and self._used_bytes < self._limit_bytes)
        if is_free or share.is_granted:
            return True
        if share not in self._waiting:
            share.missing_bytes = missing_bytes
            self._waiting[share] = None
            self._grant(share)
        return share.is_granted

    def release(self, share: Share) -> None:
        """The frame is complete, or the connection is closed."""
        self._waiting.pop(share, None)
        if share is self._beyond:
            self._beyond = None
        self._used_bytes -= share.charged_bytes
        share.charged_bytes = 0
        share.is_granted = False
        self._grant()

    def keep_copy(self, size_bytes: int) -> None:
        """A complete request waits for a worker."""
        self._copied_bytes += size_bytes
        self._used_bytes += size_bytes
        self._grant()

    def drop_copy(self, size_bytes: int) -> None:
        self._copied_bytes -= size_bytes
        self._used_bytes -= size_bytes
        self._grant()

    def _grant(self, asking: Share | None = None) -> None:
        """To those that have waited longest. The connection that is `asking` reads already."""
        while self._waiting:
            share = next(iter(self._waiting))
            if self._used_bytes + share.missing_bytes <= self._limit_bytes:
                self._used_bytes += share.missing_bytes
                share.charged_bytes += share.missing_bytes
            elif self._beyond is None and self._copied_bytes <= self._limit_bytes // 2:
                # Frames that were read beyond the limit may become copies, which must not accumulate.
                self._used_bytes -= share.charged_bytes
                share.charged_bytes = 0
                self._beyond = share
            else:
                break
            del self._waiting[share]
            share.is_granted = True
            if share is not asking:
                share.resume()
        self.turn_bytes = self._next_turn_bytes()

    def _next_turn_bytes(self) -> int:
        if self._waiting:
            return FREE_BYTES
        return max(min(self._limit_bytes - self._used_bytes, TURN_BYTES), FREE_BYTES)
