"""EditStreams, API 10004: version 0. It is Odradek's own; Kafka has no such API."""

from odradek.protocol.messages.create_streams import StreamChange, StreamResult
from odradek.protocol.schema import Request, Response, array, boolean, int32


class EditStreamsRequest(Request, api_key=10004, versions=(0, 0), flexible=0):
    streams: list[StreamChange] = array(StreamChange)
    timeout_ms: int = int32(default=60_000)
    validate_only: bool = boolean()


class EditStreamsResponse(Response, api_key=10004, versions=(0, 0), flexible=0):
    throttle_time_ms: int = int32()
    results: list[StreamResult] = array(StreamResult)
