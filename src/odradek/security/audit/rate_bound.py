"""A limit on the rate of lines of a log. Pure."""

from __future__ import annotations


class RateBound:
    """A token bucket: the lines of one second may be written at once. Lines beyond the rate are counted, not kept."""

    __slots__ = ("_last_ms", "_lines_per_second", "_tokens", "left_out")

    def __init__(self, lines_per_second: int, now_ms: float) -> None:
        self._lines_per_second = lines_per_second
        self._tokens = float(lines_per_second)
        self._last_ms = now_ms
        self.left_out = 0

    def take(self, now_ms: float) -> bool:
        """Whether a line may be written; otherwise it is counted."""
        elapsed_ms = max(0.0, now_ms - self._last_ms)
        self._last_ms = now_ms
        self._tokens = min(self._lines_per_second, self._tokens + elapsed_ms * self._lines_per_second / 1000)
        if self._tokens < 1:
            self.left_out += 1
            return False
        self._tokens -= 1
        return True

    def take_left_out(self) -> int:
        """The number of lines that were left out since the last call."""
        count, self.left_out = self.left_out, 0
        return count
