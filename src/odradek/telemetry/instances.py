"""One client instance as Kafka's ClientMetricsInstance has it: when it may ask and push, and how its last push ended.
Pure: the caller gives the time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.conventions.dataclass import dataclass
from odradek.protocol.compression import Compression
from odradek.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from odradek.telemetry.subscriptions import ClientFacts, Requested

NEVER_MS = float("-inf")
SHORTEST_EXPIRY_MS = 60_000
EXPIRY_INTERVALS = 3  # an instance is forgotten after so many push intervals without a request
ASK_AGAIN = frozenset({ErrorCode.UNKNOWN_SUBSCRIPTION_ID, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE})
_CODECS = frozenset(Compression)


@dataclass(slots=True)
class ClientInstance:
    client: ClientFacts
    requested: Requested
    subscription_version: int
    last_get_ms: float = NEVER_MS
    last_push_ms: float = NEVER_MS
    is_terminating: bool = False
    last_error: ErrorCode = ErrorCode.NONE
    expires_ms: float = 0.0

    def touch(self, now_ms: float) -> None:
        self.expires_ms = now_ms + max(SHORTEST_EXPIRY_MS, EXPIRY_INTERVALS * self.requested.interval_ms)

    def check_get(self, now_ms: float) -> ErrorCode:
        """Once in an interval, pushes counted; and after a push whose error tells the client to ask again."""
        if now_ms - max(self.last_get_ms, self.last_push_ms) >= self.requested.interval_ms:
            self.last_get_ms = now_ms
            return ErrorCode.NONE
        return ErrorCode.NONE if self.last_error in ASK_AGAIN else ErrorCode.THROTTLING_QUOTA_EXCEEDED

    def check_push(
        self,
        now_ms: float,
        *,
        subscription_id: int,
        is_terminating: bool,
        compression: int,
        size_bytes: int,
        most_bytes: int,
    ) -> ErrorCode:
        """Kafka's checks in Kafka's order. The flag of the last push is kept whatever the outcome, as in Kafka."""
        error = self._push_error(now_ms, subscription_id, is_terminating, compression, size_bytes, most_bytes)
        self.is_terminating = is_terminating
        if error:
            self.last_error = error
        return error

    def _push_error(
        self,
        now_ms: float,
        subscription_id: int,
        is_terminating: bool,
        compression: int,
        size_bytes: int,
        most_bytes: int,
    ) -> ErrorCode:
        if self.is_terminating:
            return ErrorCode.INVALID_REQUEST
        if not self._accepts_push(now_ms) and not is_terminating:
            return ErrorCode.THROTTLING_QUOTA_EXCEEDED
        if subscription_id != self.requested.subscription_id:
            return ErrorCode.UNKNOWN_SUBSCRIPTION_ID
        if compression not in _CODECS:
            return ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
        if size_bytes > most_bytes:
            return ErrorCode.TELEMETRY_TOO_LARGE
        return ErrorCode.NONE

    def _accepts_push(self, now_ms: float) -> bool:
        """At once after a request for subscriptions, because clients vary the first interval; then once in an
        interval."""
        if self.last_get_ms > self.last_push_ms or now_ms - self.last_push_ms >= self.requested.interval_ms:
            self.last_push_ms = now_ms
            return True
        return False
