"""The quota of one request that changes topics (KIP-599): each partition that is created or removed counts. Pure.

A strict quota refuses changes while the bucket is below zero; a permissive one, for versions of requests that do not
know THROTTLING_QUOTA_EXCEEDED, accepts them and throttles the client.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

    from odradek.security.quotas.token_bucket import TokenBucket


class MutationQuota(Protocol):
    def allows(self, partition_count: int) -> bool:
        """Records the change if it is allowed."""

    def give_back(self) -> None:
        """The changes that were recorded are not made: neither they nor a refusal count."""

    @property
    def throttle_ms(self) -> int: ...


class UnlimitedMutations:
    __slots__ = ()
    throttle_ms = 0

    def allows(self, partition_count: int) -> bool:  # noqa: ARG002 - the interface's signature
        return True

    def give_back(self) -> None:
        pass


UNLIMITED_MUTATIONS = UnlimitedMutations()


class LimitedMutations:
    __slots__ = ("_bucket", "_is_strict", "_limit", "_measured_ms", "_now_ms", "_recorded", "_throttle_ms")

    def __init__(self, bucket: TokenBucket, limit: float, now_ms: Callable[[], int], *, is_strict: bool) -> None:
        self._bucket = bucket
        self._limit = limit
        self._now_ms = now_ms
        self._is_strict = is_strict
        self._throttle_ms = 0
        self._measured_ms = 0
        self._recorded = 0

    def allows(self, partition_count: int) -> bool:
        now_ms = self._now_ms()
        if self._is_strict:
            if self._bucket.tokens(self._limit, now_ms) < 0:
                self._throttle(self._bucket.throttle_ms(self._limit, now_ms), now_ms)
                return False
            self._record(partition_count, now_ms)
            return True
        self._record(partition_count, now_ms)
        self._throttle(self._bucket.throttle_ms(self._limit, now_ms), now_ms)
        return True

    def give_back(self) -> None:
        if self._recorded:
            self._record(-self._recorded, self._now_ms())
        self._throttle_ms = 0

    @property
    def throttle_ms(self) -> int:
        """The remaining throttle time: the answer may come long after the change was recorded."""
        if not self._throttle_ms:
            return 0
        return max(0, self._throttle_ms - (self._now_ms() - self._measured_ms))

    def _record(self, partition_count: int, now_ms: int) -> None:
        self._bucket.record(partition_count, self._limit, now_ms)
        self._recorded += partition_count

    def _throttle(self, throttle_ms: int, now_ms: int) -> None:
        if throttle_ms:
            self._throttle_ms, self._measured_ms = throttle_ms, now_ms
