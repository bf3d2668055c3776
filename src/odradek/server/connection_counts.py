"""Counters of a listener's connections, for the broker's metrics."""

from __future__ import annotations

import enum
from collections import Counter


class CloseReason(enum.Enum):
    CLIENT = "client"  # the client closed it, or is gone
    IDLE = "idle"  # connections.max.idle.ms
    LIMIT = "limit"  # max.connections, of the broker, a listener or an address
    RATE = "rate"  # the address exceeds its connection rate
    REFUSED = "refused"  # malformed or not allowed, a failed authentication, a frame that took too long
    FAILED = "failed"  # a request failed by a bug or a disk
    STOPPING = "stopping"  # the broker stops
    ISOLATED = "isolated"  # the broker is cut off from its cluster


class ConnectionCounts:
    __slots__ = ("accepted", "closed")

    def __init__(self) -> None:
        self.accepted = 0
        self.closed: Counter[CloseReason] = Counter()
