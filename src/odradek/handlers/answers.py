"""Responses as frames: a list of parts, with the size and the header in front."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from odradek.protocol.framing import encode_response_header

if TYPE_CHECKING:
    from odradek.handlers.api import Api
    from odradek.protocol.framing import RequestHeader
    from odradek.protocol.schema import Response
    from odradek.protocol.slices import Part

API_VERSIONS_KEY = 18

Answer: TypeAlias = "list[Part] | None"  # None: this request has no answer (acks=0)


def encode_answer(api: Api, header: RequestHeader, response: Response | None) -> Answer:
    if response is None:
        return None
    flexible_from = response.flexible_from
    # ApiVersions responses always have the header of version 0: the client does not know the broker's versions.
    version = header.api_version
    is_flexible = flexible_from is not None and version >= flexible_from and api.key != API_VERSIONS_KEY
    return frame_response(header.correlation_id, response, version, is_flexible)


def frame_response(correlation_id: int, response: Response, version: int, is_flexible: bool) -> list[Part]:
    body = response.encode(version)
    try:
        data = b"".join(body)  # type: ignore[arg-type]  # a file slice raises the TypeError below
    except TypeError:
        body.insert(0, encode_response_header(correlation_id, is_flexible, sum(map(len, body))))
        return body
    return [encode_response_header(correlation_id, is_flexible, len(data)) + data]
