"""DeleteStreams, API 10005: version 0. It is Odradek's own; Kafka has no such API."""

from odradek.protocol.messages.create_streams import StreamResult
from odradek.protocol.schema import Request, Response, array, int32, string


class DeleteStreamsRequest(Request, api_key=10005, versions=(0, 0), flexible=0):
    paths: list[str] = array(string())
    timeout_ms: int = int32(default=60_000)


class DeleteStreamsResponse(Response, api_key=10005, versions=(0, 0), flexible=0):
    throttle_time_ms: int = int32()
    results: list[StreamResult] = array(StreamResult)
