"""The quotas of clients: bytes produced and fetched, time of the broker, changes of topics. Pure; times are passed in.

Departures from Kafka: a fetch of one batch that is larger than the quota allows in all windows is served when the
client has fetched nothing in them, and throttled for it; in Kafka such a client never gets the batch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from odradek.security.quotas.measurements import Measurements
from odradek.security.quotas.precedence import QuotaLevels
from odradek.security.quotas.rate import QuotaWindow, Rate
from odradek.security.quotas.token_bucket import TokenBucket

if TYPE_CHECKING:
    from collections.abc import Mapping

    from odradek.security.quotas.precedence import ApplicableQuota, QuotaEntity

PRODUCER_BYTE_RATE = "producer_byte_rate"
CONSUMER_BYTE_RATE = "consumer_byte_rate"
REQUEST_PERCENTAGE = "request_percentage"
CONTROLLER_MUTATION_RATE = "controller_mutation_rate"

UNLIMITED_BYTES = 2**63 - 1
PERCENT_PER_MS = 100.0 / 1000.0


class ClientLimits(NamedTuple):
    """The quotas of one user and client id, as of one version of the configured quotas."""

    version: int
    user: str
    client_id: str
    produce: ApplicableQuota | None
    fetch: ApplicableQuota | None
    request: ApplicableQuota | None
    mutation: ApplicableQuota | None


class ClientQuotas:
    """Owns the configured quotas of users and client ids, and the measurements of active clients."""

    def __init__(self, window: QuotaWindow, controller_window: QuotaWindow) -> None:
        self._window = window
        self._produced: Measurements[Rate] = Measurements(lambda: Rate(window))
        self._fetched: Measurements[Rate] = Measurements(lambda: Rate(window))
        self._request_time: Measurements[Rate] = Measurements(lambda: Rate(window))
        self._mutations: Measurements[TokenBucket] = Measurements(lambda: TokenBucket(controller_window))
        self.version = 0
        self.update({})

    def update(self, quotas: Mapping[QuotaEntity, Mapping[str, float]]) -> None:
        """Replaces the configured quotas; measurements are kept."""
        self.version += 1
        self._produce_levels = QuotaLevels(quotas, PRODUCER_BYTE_RATE)
        self._fetch_levels = QuotaLevels(quotas, CONSUMER_BYTE_RATE)
        self._request_levels = QuotaLevels(quotas, REQUEST_PERCENTAGE)
        self._mutation_levels = QuotaLevels(quotas, CONTROLLER_MUTATION_RATE)
        levels = (self._produce_levels, self._fetch_levels, self._request_levels, self._mutation_levels)
        self.is_active = not all(each.is_empty for each in levels)
        """Whether a quota of a user or client id is configured. If not, requests do not look further."""

    def limits_of(self, user: str, client_id: str, known: ClientLimits | None = None) -> ClientLimits:
        """`known` are the limits of the previous request of the same connection."""
        if known is not None and known.version == self.version and known.client_id == client_id and known.user == user:
            return known
        return ClientLimits(
            self.version,
            user,
            client_id,
            self._produce_levels.find(user, client_id),
            self._fetch_levels.find(user, client_id),
            self._request_levels.find(user, client_id),
            self._mutation_levels.find(user, client_id),
        )

    def record_produce(self, limits: ClientLimits, size_bytes: int, now_ms: int) -> int:
        """Returns the throttle time; so do the other methods."""
        if limits.produce is None:
            return 0
        key, limit = limits.produce
        rate = self._produced.by_key.get(key) or self._produced.get(key, now_ms)
        return rate.record_and_throttle(size_bytes, limit, now_ms)

    def record_produce_request(self, limits: ClientLimits, size_bytes: int, spent_ms: float | None, now_ms: int) -> int:
        """`record_produce`, and `record_request_time` unless the time is None; the longer throttle time. In one call,
        because every Produce request pays for it."""
        _, _, _, produce, _, request, _ = limits
        throttle_ms = 0
        if produce is not None:
            key, limit = produce
            rate = self._produced.by_key.get(key) or self._produced.get(key, now_ms)
            throttle_ms = rate.record_and_throttle(size_bytes, limit, now_ms)
        if spent_ms is not None and request is not None:
            key, limit = request
            rate = self._request_time.by_key.get(key) or self._request_time.get(key, now_ms)
            longer_ms = rate.record_and_throttle(spent_ms * PERCENT_PER_MS, limit, now_ms)
            if longer_ms:
                return max(throttle_ms, min(longer_ms, self._window.window_ms))
        return throttle_ms

    def record_request_time(self, limits: ClientLimits, spent_ms: float, now_ms: int) -> int:
        """The throttle time is at most one window, because a single slow request is no reason for a long one."""
        if limits.request is None:
            return 0
        key, limit = limits.request
        rate = self._request_time.by_key.get(key) or self._request_time.get(key, now_ms)
        throttle_ms = rate.record_and_throttle(spent_ms * PERCENT_PER_MS, limit, now_ms)
        return throttle_ms and min(throttle_ms, self._window.window_ms)

    def largest_fetch_bytes(self, limits: ClientLimits) -> int:
        """The most bytes that a client may fetch at once if it has fetched nothing in the windows."""
        if limits.fetch is None:
            return UNLIMITED_BYTES
        seconds = (self._window.samples - 1) * self._window.window_ms / 1000
        return min(int(limits.fetch.limit * seconds), UNLIMITED_BYTES)

    def record_fetch(self, limits: ClientLimits, size_bytes: int, request_throttle_ms: int, now_ms: int) -> Fetched:
        """Records the bytes of a response, unless it must be replaced by an empty one."""
        if limits.fetch is None:
            return Fetched(request_throttle_ms, request_throttle_ms > 0)
        rate = self._fetched.get(limits.fetch.key, now_ms)
        throttle_ms = rate.record_and_throttle(size_bytes, limits.fetch.limit, now_ms)
        if throttle_ms == 0 and request_throttle_ms == 0:
            return _SERVED
        rate.record(-size_bytes, now_ms)
        if request_throttle_ms == 0 and rate.per_second(now_ms) <= 0:
            rate.record(size_bytes, now_ms)
            return Fetched(throttle_ms, False)
        return Fetched(max(throttle_ms, request_throttle_ms), True)

    def mutation_bucket(self, limits: ClientLimits, now_ms: int) -> tuple[TokenBucket, float] | None:
        """The bucket of a client's changes of topics, and its quota."""
        if limits.mutation is None:
            return None
        return self._mutations.get(limits.mutation.key, now_ms), limits.mutation.limit


class Fetched(NamedTuple):
    throttle_ms: int
    is_withheld: bool
    """Whether the client gets an empty response."""


_SERVED = Fetched(0, False)
