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
    flexible_from = api.response.flexible_from
    # ApiVersions responses always have the header of version 0: the client does not know the broker's versions.
    is_flexible = api.key != API_VERSIONS_KEY and flexible_from is not None and header.api_version >= flexible_from
    return frame_response(header.correlation_id, response, header.api_version, is_flexible)


def frame_response(correlation_id: int, response: Response, version: int, is_flexible: bool) -> list[Part]:
    head = encode_response_header(correlation_id, is_flexible)
    body = response.encode(version)
    try:
        data = b"".join(body)  # type: ignore[arg-type]  # a file slice raises the TypeError below
    except TypeError:
        size = len(head) + sum(map(len, body))
        body.insert(0, size.to_bytes(4, "big") + head)
        return body
    return [(len(head) + len(data)).to_bytes(4, "big") + head + data]
