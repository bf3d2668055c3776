"""The wall clock for whatever deletes: a clock that leaps ahead is not believed at once.

Records are deleted by their age, so a clock that is set a week ahead by mistake would empty every topic. Against that
the monotonic clock is a witness while the broker runs, and at its start the time of the last checkpoint. A leap that
they do not confirm is believed only after it has stood for a while; until then time goes on as it went before. A clock
that is set back is believed at once: that keeps records longer, which harms nobody."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.host.logs import get_logger

if TYPE_CHECKING:
    from odradek.host.clock import Clock

log = get_logger(__name__)

HOUR_MS = 3_600_000
LEAP_MS = HOUR_MS // 12  # more than any correction of a clock that is roughly right
PATIENCE_MS = 24 * HOUR_MS  # so that a person can notice, or the network's time
# After a start nobody can tell a leap from a long absence; a machine sets its clock soon after it was switched on.
ABSENCE_MS = 24 * HOUR_MS
START_PATIENCE_MS = HOUR_MS


class BelievedTime:
    __slots__ = ("_believed_ms", "_clock", "_doubted_since_ms", "_monotonic_ms", "_patience_ms")

    def __init__(self, clock: Clock, last_seen_ms: int | None = None) -> None:
        """`last_seen_ms`: the wall clock when an earlier run of this broker last wrote something."""
        self._clock = clock
        self._monotonic_ms = clock.monotonic_ms()
        self._believed_ms: float = clock.now_ms()
        self._patience_ms = PATIENCE_MS
        self._doubted_since_ms: float | None = None
        if last_seen_ms is not None and self._believed_ms - last_seen_ms > ABSENCE_MS:
            self._believed_ms = last_seen_ms
            self._doubt(START_PATIENCE_MS)

    def now_ms(self) -> int:
        wall_ms, monotonic_ms = self._clock.now_ms(), self._clock.monotonic_ms()
        reckoned_ms = self._believed_ms + monotonic_ms - self._monotonic_ms
        self._monotonic_ms = monotonic_ms
        self._believed_ms = wall_ms
        if wall_ms - reckoned_ms <= LEAP_MS:
            self._doubted_since_ms = None
        else:
            if self._doubted_since_ms is None:
                self._doubt(PATIENCE_MS)
            if not self._is_patience_over():
                self._believed_ms = reckoned_ms
        return int(self._believed_ms)

    @property
    def is_in_doubt(self) -> bool:
        """Whether the clock says another time than is believed."""
        self.now_ms()
        return self._doubted_since_ms is not None

    def _doubt(self, patience_ms: int) -> None:
        self._doubted_since_ms = self._monotonic_ms
        self._patience_ms = patience_ms
        log.warning(
            "the clock is far ahead of what was expected: nothing is deleted by age until it is put right or has stood",
            clock_ms=self._clock.now_ms(),
            expected_ms=int(self._believed_ms),
            hours=patience_ms // HOUR_MS,
        )

    def _is_patience_over(self) -> bool:
        doubted_since_ms = self._doubted_since_ms
        if doubted_since_ms is None or self._monotonic_ms - doubted_since_ms < self._patience_ms:
            return False
        self._doubted_since_ms = None
        log.warning("the clock has stood: it is believed from now on", clock_ms=self._clock.now_ms())
        return True
