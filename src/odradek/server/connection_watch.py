"""Time limits of connections: a peer that connects and sends nothing, sends a frame very slowly, or closes its socket
while it is throttled, is noticed within a second after its time.

Only connections in such a state are visited: those that wait for the rest of a frame, throttled ones, and those that
must authenticate first, which have one time for all of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from odradek.host.logs import get_logger

if TYPE_CHECKING:
    from odradek.host.clock import Clock, Timer

log = get_logger(__name__)

SWEEP_INTERVAL_MS = 1_000
FIRST_FRAME_LIMIT_MS = 10_000
FRAME_LIMIT_MS = 30_000
AUTHENTICATION_LIMIT_MS = 60_000
"""For the whole first authentication, from the opening of the connection. Kafka has `connections.max.idle.ms` only."""
DELAYING_FRAME_LIMIT_MS = 5_000
SLOWEST_BYTES_PER_MS = 64.0
"""A frame may take longer than its limit only while it arrives faster than this on average."""


class Watched(Protocol):
    def overdue(self, now_ms: float) -> str | None:
        """Why the connection must be closed."""

    @property
    def needs_watch(self) -> bool: ...

    @property
    def is_muted(self) -> bool: ...

    def refuse(self, reason: str) -> None: ...


def frame_limit_ms(received_bytes: int, *, is_first: bool) -> float:
    """How long a frame of which this many bytes have arrived may take."""
    limit_ms = FIRST_FRAME_LIMIT_MS if is_first else FRAME_LIMIT_MS
    return limit_ms + received_bytes / SLOWEST_BYTES_PER_MS


def delaying_frame_limit_ms(received_bytes: int) -> float:
    """How long a frame may take while others wait for memory, of which it has some, with so many bytes received."""
    return DELAYING_FRAME_LIMIT_MS + received_bytes / SLOWEST_BYTES_PER_MS


class ConnectionWatch:
    """The connections that are visited each second; the timer runs while there are some."""

    __slots__ = ("_clock", "_timer", "_watched")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._watched: dict[Watched, None] = {}
        self._timer: Timer | None = None

    def __len__(self) -> int:
        return len(self._watched)

    @property
    def muted_count(self) -> int:
        return sum(connection.is_muted for connection in self._watched)

    def add(self, connection: Watched) -> None:
        self._watched[connection] = None
        if self._timer is None:
            self._timer = self._clock.call_after(SWEEP_INTERVAL_MS, self._sweep)

    def remove(self, connection: Watched) -> None:
        self._watched.pop(connection, None)

    def close(self) -> None:
        self._watched.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _sweep(self) -> None:
        now_ms = self._clock.monotonic_ms()
        for connection in tuple(self._watched):
            if not connection.needs_watch:
                del self._watched[connection]
            elif (reason := connection.overdue(now_ms)) is not None:
                connection.refuse(reason)
        self._timer = self._clock.call_after(SWEEP_INTERVAL_MS, self._sweep) if self._watched else None
