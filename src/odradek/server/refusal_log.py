"""Lines about connections that were refused or closed, at a bounded rate: peers decide how many there are.

Lines beyond the rate are counted, and their number is logged.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.host.logs import get_logger
from odradek.security.audit.rate_bound import RateBound

if TYPE_CHECKING:
    from odradek.host.clock import Clock, Timer

log = get_logger(__name__)

LINES_PER_SECOND = 10
REPORT_AFTER_MS = 1_000.0


class RefusalLog:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._rate = RateBound(LINES_PER_SECOND, clock.monotonic_ms())
        self._timer: Timer | None = None

    def report(self, event: str, **facts: object) -> None:
        if self._rate.take(self._clock.monotonic_ms()):
            log.warning(event, **facts)
        elif self._timer is None:
            self._timer = self._clock.call_after(REPORT_AFTER_MS, self._report_left_out)

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._report_left_out()

    def _report_left_out(self) -> None:
        self._timer = None
        log.warning("further connections were refused or closed", count=self._rate.take_left_out())
