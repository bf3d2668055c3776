"""A request of which the receiving broker refuses parts itself: the rest for the controller, one response of both."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from odradek.handlers.answers import encode_answer
from odradek.handlers.request_record import count_errors

if TYPE_CHECKING:
    from odradek.handlers.answers import Answer
    from odradek.handlers.api import Api
    from odradek.handlers.context import RequestContext
    from odradek.metrics.request_metrics import ApiMetrics
    from odradek.protocol.framing import RequestHeader
    from odradek.protocol.schema import Request, Response

_CORRELATION_BYTES = 4


class PartlyRefused:
    """`frame` and `request` are what the controller is asked. The errors of the response are counted in `metrics`;
    those of a response that another broker has encoded are counted there."""

    def __init__(self, api: Api, header: RequestHeader, frame: bytes, request: Request, metrics: ApiMetrics) -> None:
        self._api = api
        self._metrics = metrics
        self._header = header
        self._refused: list[Any] = []
        self.request: Any = request
        self.frame = frame

    async def run(self, context: RequestContext) -> None:
        """Refuse what this broker cannot use; nothing for most APIs."""
        if self._api.prepare is None:
            return
        self.request, refusals = await self._api.prepare(self.request, context)
        self._refused = list(getattr(refusals, "responses"))  # noqa: B009 - both APIs that prepare have this field
        if self._refused:
            self._encode_request()

    def shorten_timeout(self, remaining_ms: float) -> None:
        """For the next attempt, so that the controller makes no change after the client has got a timeout error."""
        if hasattr(self.request, "timeout_ms"):
            self.request.timeout_ms = max(int(remaining_ms), 0)
            self._encode_request()

    def _encode_request(self) -> None:
        body = b"".join(bytes(part) for part in self.request.encode(self._header.api_version))
        self.frame = self.frame[: self._header.body_position] + body

    @property
    def is_answered(self) -> bool:
        """Whether nothing is left for the controller."""
        return bool(self._refused) and not self.request.resources

    def answer(self, response: Response | None = None) -> Answer:
        """The response of the controller with the refusals of this broker."""
        merged = self._merge(self._api.response() if response is None else response)
        count_errors(self._metrics, merged)
        return encode_answer(self._api, self._header, merged)

    def answer_encoded(self, data: bytes) -> Answer:
        """The same with a response as the controller has encoded it."""
        if not self._refused:
            return [len(data).to_bytes(4, "big") + data]
        count_errors(self._metrics, self._merge(self._api.response()))
        flexible_from, version = self._api.response.flexible_from, self._header.api_version
        position = _CORRELATION_BYTES + (flexible_from is not None and version >= flexible_from)
        merged = self._merge(self._api.response.decode(memoryview(data), position, version))
        return encode_answer(self._api, self._header, merged)

    def _merge(self, response: Any) -> Response:
        if self._refused:
            response.responses = self._refused + response.responses
        merged: Response = response
        return merged
