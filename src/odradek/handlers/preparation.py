"""A request of which the receiving broker refuses parts itself: the rest for the controller, one response of both."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from odradek.handlers.answers import encode_answer

if TYPE_CHECKING:
    from odradek.handlers.answers import Answer
    from odradek.handlers.api import Api
    from odradek.handlers.context import RequestContext
    from odradek.protocol.framing import RequestHeader
    from odradek.protocol.schema import Request, Response

_CORRELATION_BYTES = 4


class Prepared:
    """`frame` and `request` are what the controller is asked."""

    def __init__(self, api: Api, header: RequestHeader, frame: bytes, request: Request) -> None:
        self._api = api
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
            body = b"".join(bytes(part) for part in self.request.encode(self._header.api_version))
            self.frame = self.frame[: self._header.body_position] + body

    @property
    def is_answered(self) -> bool:
        """Whether nothing is left for the controller."""
        return bool(self._refused) and not self.request.resources

    def answer(self, response: Response | None = None) -> Answer:
        """The response of the controller with the refusals of this broker."""
        answered: Any = self._api.response() if response is None else response
        if self._refused:
            answered.responses = self._refused + answered.responses
        return encode_answer(self._api, self._header, answered)

    def answer_encoded(self, data: bytes) -> Answer:
        """The same with a response as the controller has encoded it."""
        if not self._refused:
            return [len(data).to_bytes(4, "big") + data]
        flexible_from, version = self._api.response.flexible_from, self._header.api_version
        position = _CORRELATION_BYTES + (flexible_from is not None and version >= flexible_from)
        return self.answer(self._api.response.decode(memoryview(data), position, version))
