"""A token bucket with the arithmetic of Kafka's `TokenBucket` (KIP-599). Pure.

It is refilled at the rate of the quota and holds what the quota allows in all windows together. It may be overdrawn:
a burst is allowed as long as the bucket is not below zero before it, and is paid for by the time until it is refilled.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from odradek.security.quotas.rate import LONGEST_THROTTLE_MS

if TYPE_CHECKING:
    from odradek.security.quotas.rate import QuotaWindow

INACTIVE_MS = 3_600_000


class TokenBucket:
    """A new bucket is full."""

    __slots__ = ("_last_update_ms", "_tokens", "_window")

    def __init__(self, window: QuotaWindow) -> None:
        self._window = window
        self._tokens: float | None = None
        self._last_update_ms = 0

    def tokens(self, quota: float, now_ms: int) -> float:
        most = self._most(quota)
        if self._tokens is None:
            self._tokens = most
        else:
            self._tokens = min(most, self._tokens + quota * ((now_ms - self._last_update_ms) / 1000.0))
        self._last_update_ms = now_ms
        return self._tokens

    def record(self, value: float, quota: float, now_ms: int) -> None:
        self._tokens = min(self._most(quota), self.tokens(quota, now_ms) - value)

    def throttle_ms(self, quota: float, now_ms: int) -> int:
        """How long until the bucket is not below zero; 0 if it is not."""
        tokens = self.tokens(quota, now_ms)
        if tokens >= 0:
            return 0
        return min(math.floor(-tokens / quota * 1000 + 0.5), LONGEST_THROTTLE_MS)

    def is_forgotten(self, now_ms: int) -> bool:
        """Whether the bucket was unused for so long that Kafka drops it as well."""
        return now_ms - self._last_update_ms >= INACTIVE_MS

    def _most(self, quota: float) -> float:
        return self._window.samples * (self._window.window_ms / 1000.0) * quota
