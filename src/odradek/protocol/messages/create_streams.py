"""CreateStreams, API 10003: version 0. It is Odradek's own; Kafka has no such API."""

from odradek.protocol.schema import Request, Response, Struct, array, boolean, int8, int16, int32, string


class StreamSetting(Struct):
    """A setting of the stream's topics. Without a value it is removed."""

    name: str = string()
    value: str | None = string(nullable="0+")


class StreamPermission(Struct):
    name: str = string()
    expression: str = string()


class StreamChange(Struct):
    """What is not named stays as it is, or gets its default: 0 partitions, −1 for `creates_topics`."""

    path: str = string()
    default_partitions: int = int32()
    creates_topics: int = int8(default=-1)
    settings: list[StreamSetting] = array(StreamSetting)
    permissions: list[StreamPermission] = array(StreamPermission)


class StreamResult(Struct):
    path: str = string()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)


class CreateStreamsRequest(Request, api_key=10003, versions=(0, 0), flexible=0):
    streams: list[StreamChange] = array(StreamChange)
    timeout_ms: int = int32(default=60_000)
    validate_only: bool = boolean()


class CreateStreamsResponse(Response, api_key=10003, versions=(0, 0), flexible=0):
    throttle_time_ms: int = int32()
    results: list[StreamResult] = array(StreamResult)
