"""One log line for each slow request, at a limited rate.

A request is slow if it took longer than `slow.request.ms` without the waits that are by design: the time that a fetch
waits for records, that a member waits for its group, and throttling.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.host.logs import get_logger

if TYPE_CHECKING:
    from collections.abc import Mapping

    from odradek.handlers.context import ClientConnection
    from odradek.protocol.framing import RequestHeader

log = get_logger(__name__)

LINES_PER_INTERVAL = 10
INTERVAL_MS = 10_000.0
NEVER_MS = float("inf")


class SlowRequests:
    __slots__ = ("_interval_began_ms", "_lines", "_omitted", "threshold_ms")

    def __init__(self) -> None:
        self.threshold_ms = NEVER_MS
        self._interval_began_ms = float("-inf")
        self._lines = 0
        self._omitted = 0

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
        if now_ms - self._interval_began_ms >= INTERVAL_MS:
            self._interval_began_ms = now_ms
            self._lines = 0
        if self._lines >= LINES_PER_INTERVAL:
            self._omitted += 1
            return
        self._lines += 1
        omitted, self._omitted = self._omitted, 0
        log.warning(
            "slow request",
            api=api,
            version=header.api_version,
            client=connection.host,
            client_id=header.client_id,
            listener=connection.listener_name,
            **{f"{stage}_ms": round(duration_ms, 1) for stage, duration_ms in times_ms.items()},
            **({"not_logged": omitted} if omitted else {}),
        )
