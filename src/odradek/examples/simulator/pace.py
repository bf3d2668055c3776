"""Paces records at a steady rate, without drift and without a burst after a pause."""

from __future__ import annotations

LONGEST_DELAY_S = 1.0  # after a longer delay, continue from now instead of catching up


class Pace:
    """The n-th record is due n / rate seconds after the start or the last change of the rate, regardless of delays of
    earlier records."""

    def __init__(self, rate: float, now_s: float) -> None:
        self.rate = rate
        self._began_s = now_s
        self._slept_s = 0.0
        self._taken = 0

    def take(self, now_s: float) -> float | None:
        """The due time of the next record, in seconds since the start; None if it is in the future."""
        late_s = -self.wait_s(now_s)
        if late_s < 0:
            return None
        if late_s > LONGEST_DELAY_S:
            self._slept_s += late_s
        due_s = self._next_due_s
        self._taken += 1
        return due_s

    def change_rate(self, rate: float) -> None:
        """The record that is due next keeps its time; those after it follow at the new rate."""
        if rate != self.rate:
            self._slept_s, self._taken, self.rate = self._next_due_s, 0, rate

    def wait_s(self, now_s: float) -> float:
        """The seconds until the next record is due; negative if it is overdue."""
        return self._began_s + self._next_due_s - now_s

    @property
    def _next_due_s(self) -> float:
        return self._taken / self.rate + self._slept_s
