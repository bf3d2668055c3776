"""A broker on the other side of a connection that answers ApiVersions and what a test tells it to."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from odradek.protocol.framing import RequestHeader, decode_request_header, encode_response_header
from odradek.protocol.messages.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from odradek.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from odradek.protocol.schema import Response

APIS = {each.api_key: each for each in (ApiVersionsRequest, ListGroupsRequest)}


def frame(correlation_id: int, response: Response, version: int) -> bytes:
    is_flexible = response.is_flexible(version) and response.api_key != ApiVersionsRequest.api_key
    body = b"".join(response.encode(version))  # type: ignore[arg-type]  # no file slices in these
    return encode_response_header(correlation_id, is_flexible, len(body)) + body


class Peer(asyncio.BufferedProtocol):
    """`on_request` gets each request but ApiVersions; `answer` sends a response to the oldest unanswered one."""

    def __init__(self, on_request: Callable[[Peer, RequestHeader], None], *, newest_version: int = 5) -> None:
        self._on_request = on_request
        self._newest_version = newest_version
        self._memory = bytearray(1 << 16)
        self._received = bytearray()
        self.unanswered: list[RequestHeader] = []
        self.is_lost = False

    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def get_buffer(self, sizehint: int) -> bytearray:
        return self._memory

    def buffer_updated(self, nbytes: int) -> None:
        self._received += self._memory[:nbytes]
        while len(self._received) >= 4:
            end = 4 + int.from_bytes(self._received[:4], "big")
            if len(self._received) < end:
                return
            request = memoryview(bytes(self._received[4:end]))
            del self._received[:end]
            self._take(decode_request_header(request, lambda key: APIS[key].flexible_from))

    def _take(self, header: RequestHeader) -> None:
        if header.api_key == ApiVersionsRequest.api_key:
            keys = [ApiVersion(api_key=16, min_version=0, max_version=self._newest_version)]
            self.transport.write(frame(header.correlation_id, ApiVersionsResponse(api_keys=keys), header.api_version))
            return
        self.unanswered.append(header)
        self._on_request(self, header)

    def answer(self) -> None:
        header = self.unanswered.pop(0)
        response = ListGroupsResponse(throttle_time_ms=header.correlation_id)
        self.transport.write(frame(header.correlation_id, response, header.api_version))

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_lost = True
