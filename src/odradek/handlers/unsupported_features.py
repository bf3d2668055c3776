"""Reports in the broker's log that a client asked for a feature that this broker does not have.

A client sees only an error code or a closed connection; the log line names the feature. Each feature is reported at
most once a minute, so that a client that retries does not fill the log.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.host.logs import get_logger

if TYPE_CHECKING:
    from odradek.host.clock import Clock

log = get_logger(__name__)

INTERVAL_MS = 60_000
SHARE_GROUPS = "share groups"
STREAMS_GROUPS = "streams groups"
API_KEYS = {
    **dict.fromkeys((76, 77, 78, 79, 83, 84, 85, 86, 87, 90, 91, 92), SHARE_GROUPS),
    **dict.fromkeys((88, 89), STREAMS_GROUPS),
}  # of Kafka's APIs that belong to these features


class UnsupportedFeatures:
    """Logs requests for unsupported features, and counts those that were not logged."""

    def __init__(self) -> None:
        self._reported_ms: dict[str, float] = {}
        self._unreported: dict[str, int] = {}

    def report(self, feature: str, clock: Clock, *, client: str, client_id: str | None) -> None:
        now_ms = clock.monotonic_ms()
        reported_ms = self._reported_ms.get(feature)
        if reported_ms is not None and now_ms - reported_ms < INTERVAL_MS:
            self._unreported[feature] = self._unreported.get(feature, 0) + 1
            return
        self._reported_ms[feature] = now_ms
        repeated = self._unreported.pop(feature, 0)
        log.warning(
            "unsupported feature requested",
            feature=feature,
            client=client,
            client_id=client_id,
            **({"repeated": repeated} if repeated else {}),
        )
