"""The wall clock for code that deletes by age: a jump ahead is not accepted at once.

A clock that is set a week ahead by mistake would make every record old enough to be deleted. While the broker runs, the
monotonic clock confirms or contradicts the wall clock; at start, the time of the last checkpoint does. A jump that is
not confirmed is accepted only after it has lasted for a while; until then time advances with the monotonic clock. A
clock that is set back is accepted at once: records are kept longer, which does no harm."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.host.logs import get_logger

if TYPE_CHECKING:
    from odradek.host.clock import Clock

log = get_logger(__name__)

HOUR_MS = 3_600_000
LARGEST_CORRECTION_MS = HOUR_MS // 12  # of a clock that is roughly right
ACCEPTED_AFTER_MS = 24 * HOUR_MS  # enough for an operator, or NTP, to set the clock right
# After a start a jump looks like a long downtime; machines set their clock soon after they boot.
LONGEST_DOWNTIME_MS = 24 * HOUR_MS
ACCEPTED_AFTER_START_MS = HOUR_MS


class ClockSkewGuard:
    __slots__ = ("_accepted_after_ms", "_clock", "_guarded_ms", "_jumped_at_ms", "_monotonic_ms")

    def __init__(self, clock: Clock, last_seen_ms: int | None = None) -> None:
        """`last_seen_ms`: the wall clock when an earlier run of this broker last wrote a checkpoint."""
        self._clock = clock
        self._monotonic_ms = clock.monotonic_ms()
        self._guarded_ms: float = clock.now_ms()
        self._accepted_after_ms = ACCEPTED_AFTER_MS
        self._jumped_at_ms: float | None = None  # by the monotonic clock; None when the wall clock is accepted
        if last_seen_ms is not None and self._guarded_ms - last_seen_ms > LONGEST_DOWNTIME_MS:
            self._guarded_ms = last_seen_ms
            self._begin_jump(ACCEPTED_AFTER_START_MS)

    def now_ms(self) -> int:
        wall_ms, monotonic_ms = self._clock.now_ms(), self._clock.monotonic_ms()
        expected_ms = self._guarded_ms + monotonic_ms - self._monotonic_ms
        self._monotonic_ms = monotonic_ms
        self._guarded_ms = wall_ms
        if wall_ms - expected_ms <= LARGEST_CORRECTION_MS:
            self._jumped_at_ms = None
        else:
            if self._jumped_at_ms is None:
                self._begin_jump(ACCEPTED_AFTER_MS)
            if not self._is_jump_over():
                self._guarded_ms = expected_ms
        return int(self._guarded_ms)

    @property
    def is_skewed(self) -> bool:
        """Whether the wall clock is ahead of the guarded time."""
        self.now_ms()
        return self._jumped_at_ms is not None

    def _begin_jump(self, accepted_after_ms: int) -> None:
        self._jumped_at_ms = self._monotonic_ms
        self._accepted_after_ms = accepted_after_ms
        log.warning(
            "the clock is far ahead of the expected time: nothing is deleted by age until it is set right or has stayed"
            " ahead for some hours",
            clock_ms=self._clock.now_ms(),
            expected_ms=int(self._guarded_ms),
            hours=accepted_after_ms // HOUR_MS,
        )

    def _is_jump_over(self) -> bool:
        jumped_at_ms = self._jumped_at_ms
        if jumped_at_ms is None or self._monotonic_ms - jumped_at_ms < self._accepted_after_ms:
            return False
        self._jumped_at_ms = None
        log.warning("the clock has stayed ahead: its time is accepted", clock_ms=self._clock.now_ms())
        return True
