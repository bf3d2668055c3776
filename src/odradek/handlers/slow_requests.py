"""One log line for each slow request, at a limited rate.

A request is slow if it took longer than `slow.request.ms` without the waits that are by design: the time that a fetch
waits for records, that a member waits for its group, and throttling.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.host.logs import get_logger
from odradek.security.audit.rate_bound import RateBound

if TYPE_CHECKING:
    from collections.abc import Mapping

    from odradek.handlers.context import ClientConnection
    from odradek.protocol.framing import RequestHeader

log = get_logger(__name__)

LINES_PER_SECOND = 10
NEVER_MS = float("inf")


class SlowRequests:
    __slots__ = ("_rate", "threshold_ms")

    def __init__(self, now_ms: float) -> None:
        self.threshold_ms = NEVER_MS
        self._rate = RateBound(LINES_PER_SECOND, now_ms)

    def configure(self, slow_request_ms: int) -> None:
        """A negative number reports none."""
        self.threshold_ms = slow_request_ms if slow_request_ms >= 0 else NEVER_MS

    def report(
        self,
        api: str,
        header: RequestHeader,
        connection: ClientConnection,
        times_ms: Mapping[str, float],
        now_ms: float,
    ) -> None:
        if not self._rate.take(now_ms):
            return
        left_out = self._rate.take_left_out()
        log.warning(
            "slow request",
            api=api,
            version=header.api_version,
            client=connection.host,
            client_id=header.client_id,
            listener=connection.listener_name,
            **{f"{stage}_ms": round(duration_ms, 1) for stage, duration_ms in times_ms.items()},
            **({"not_logged": left_out} if left_out else {}),
        )
