"""The pages of the HTTP server: /metrics, /healthy and /ready."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.metrics import exposition
from odradek.server.monitoring.http_messages import HttpResponse, refusal

if TYPE_CHECKING:
    from odradek.server.monitoring.collection import MetricsCollection
    from odradek.server.monitoring.readiness import Readiness


class MonitoringPages:
    def __init__(self, collection: MetricsCollection, readiness: Readiness) -> None:
        self._collection = collection
        self._readiness = readiness

    async def answer(self, path: str) -> HttpResponse:
        if path == "/metrics":
            return HttpResponse(
                200, exposition.expose(await self._collection.collect()).encode(), exposition.CONTENT_TYPE
            )
        if path == "/healthy":
            return HttpResponse(200, b"healthy\n")  # the event loop turns: it has answered
        if path == "/ready":
            reasons = self._readiness.reasons()
            if reasons:
                return HttpResponse(503, "".join(f"not ready: {reason}\n" for reason in reasons).encode())
            return HttpResponse(200, b"ready\n")
        return refusal(404, "there are /metrics, /healthy and /ready")
