"""The limit of memory for requests that are incomplete, or wait to be handled, over all connections. Pure.

Bytes of incomplete frames count, beyond FREE_BYTES for each connection, and so do copies of requests that wait for a
worker. While there is room, a connection reads as much as there is room for. Without room it reads what most requests
fit into, and waits if its frame is longer. A connection that waits is granted the rest of its frame when there is room
for it, or when no other connection reads beyond the limit. So one connection always makes progress, whatever the size
of its frame is, and it delays no frame that there is room for.

All connections of one address are an owner. An owner gets at most half of the limit, and of those that wait,
the owner with the least memory comes first: a host that leaves its requests incomplete delays its own requests, and
hardly those of others. What an owner has read beyond the limit since somebody began to wait counts as its memory here,
so that owners take turns.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

FREE_BYTES = 4 << 10
SMALL_BYTES = 64 << 10  # read without room: requests of this size are rarely incomplete
TURN_BYTES = 1 << 20  # read from one connection before others are served
UNLIMITED_BYTES = 2**62


class Share:
    """What one connection uses of the budget, which alone changes it."""

    __slots__ = ("charged_bytes", "is_granted", "missing_bytes", "owner", "resume")

    def __init__(self, resume: Callable[[], None], owner: str = "") -> None:
        """`resume` is called when a connection that had to wait may read. `owner` is the address of the client; it is
        set before the connection reads."""
        self.resume = resume
        self.owner = owner
        self.charged_bytes = 0
        self.missing_bytes = 0
        """The bytes that the frame lacked when its time limit began: when its memory was granted or its first bytes
        came."""
        self.is_granted = False
        """Whether the connection may read the rest of its frame."""


class ReceiveBudget:
    __slots__ = (
        "_beyond",
        "_copied_bytes",
        "_held",
        "_largest_held_bytes",
        "_limit_bytes",
        "_read_beyond",
        "_used_bytes",
        "_waiting",
        "is_short",
    )

    def __init__(self, limit_bytes: int = 0) -> None:
        """0 or less is no limit."""
        self._limit_bytes = limit_bytes if limit_bytes > 0 else UNLIMITED_BYTES
        self._largest_held_bytes = self._limit_bytes // 2
        self._used_bytes = 0  # charged to shares, and copied
        self._copied_bytes = 0
        self._held: dict[str, int] = {}  # charged to the shares of each owner
        self._waiting: dict[str, dict[Share, None]] = {}  # of each owner, in the order in which they began to wait
        self._beyond: Share | None = None  # which reads beyond the limit, and is charged nothing
        self._read_beyond: dict[str, int] = {}  # by each owner, since somebody began to wait
        self.is_short = self._largest_held_bytes < TURN_BYTES
        """Whether a connection must ask how much it may read at once: there may be less room than TURN_BYTES."""

    @property
    def used_bytes(self) -> int:
        return self._used_bytes

    @property
    def waiting_count(self) -> int:
        return sum(map(len, self._waiting.values()))

    @property
    def has_waiting(self) -> bool:
        return bool(self._waiting)

    def is_waiting(self, share: Share) -> bool:
        return share in self._waiting.get(share.owner, ())

    def turn_of(self, share: Share) -> int:
        """How much this connection may read at once without a grant."""
        room_bytes = self._room_of(share.owner)
        if share.owner in self._waiting or room_bytes <= 0:
            return FREE_BYTES
        reserve_bytes = min(SMALL_BYTES, self._limit_bytes + self._limit_bytes // 2 - self._used_bytes)
        return max(min(max(self._limit_bytes - self._used_bytes, reserve_bytes), room_bytes, TURN_BYTES), FREE_BYTES)

    def charge(self, share: Share, unread_bytes: int) -> None:
        """The connection has this many bytes in memory. A grant was charged for the whole frame."""
        if share is self._beyond:
            return
        charged_bytes = max(unread_bytes - FREE_BYTES, share.charged_bytes if share.is_granted else 0)
        if charged_bytes != share.charged_bytes:
            self._hold(share, charged_bytes - share.charged_bytes)
            self._grant()

    def may_read(self, share: Share, unread_bytes: int, missing_bytes: int) -> bool:
        """Whether a connection with an incomplete frame may read on. If not, it waits."""
        if unread_bytes < FREE_BYTES or share.is_granted:
            return True
        waiting = self._waiting.get(share.owner)
        if waiting is None:
            if self._used_bytes < self._limit_bytes and self._room_of(share.owner) > 0:
                return True
            waiting = self._waiting[share.owner] = {}
        if share not in waiting:
            share.missing_bytes = missing_bytes
            waiting[share] = None
            self._grant(share)
            if share.is_granted:
                share.missing_bytes += unread_bytes  # it has not waited, so its time runs since the frame began
        return share.is_granted

    def release(self, share: Share) -> None:
        """The frame is complete, or the connection is closed."""
        self._remove_waiting(share)
        if share is self._beyond:
            self._beyond = None
        self._hold(share, -share.charged_bytes)
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

    def _room_of(self, owner: str) -> int:
        """Copies count for every owner: who sent them is not known."""
        return self._largest_held_bytes - self._copied_bytes - self._held.get(owner, 0)

    def _hold(self, share: Share, more_bytes: int) -> None:
        self._used_bytes += more_bytes
        share.charged_bytes += more_bytes
        held_bytes = self._held.get(share.owner, 0) + more_bytes
        if held_bytes:
            self._held[share.owner] = held_bytes
        else:
            self._held.pop(share.owner, None)

    def _remove_waiting(self, share: Share) -> None:
        waiting = self._waiting.get(share.owner)
        if waiting is not None:
            waiting.pop(share, None)
            if not waiting:
                del self._waiting[share.owner]

    def _grant(self, asking: Share | None = None) -> None:
        """The connection that is `asking` reads already."""
        while (share := self._take_grant()) is not None:
            self._remove_waiting(share)
            share.is_granted = True
            if share is not asking:
                share.resume()
        if not self._waiting:
            self._read_beyond.clear()
        room_bytes = min(self._limit_bytes - self._used_bytes, self._largest_held_bytes - self._copied_bytes)
        self.is_short = bool(self._waiting) or room_bytes < TURN_BYTES

    def _take_grant(self) -> Share | None:
        """The connection that is next, with the memory for it; of each owner the one that has waited longest."""
        for owner in sorted(self._waiting, key=self._taken_by):
            share = next(iter(self._waiting[owner]))
            missing_bytes = share.missing_bytes
            if self._used_bytes + missing_bytes <= self._limit_bytes and missing_bytes <= self._room_of(owner):
                self._hold(share, missing_bytes)
                return share
            # Frames that were read beyond the limit may become copies, which must not accumulate.
            if self._beyond is None and self._copied_bytes <= self._limit_bytes // 2:
                self._hold(share, -share.charged_bytes)
                self._beyond = share
                self._read_beyond[owner] = self._read_beyond.get(owner, 0) + missing_bytes
                return share
        return None

    def _taken_by(self, owner: str) -> int:
        return self._held.get(owner, 0) + self._read_beyond.get(owner, 0)
