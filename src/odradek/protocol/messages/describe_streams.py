"""DescribeStreams, API 10006: version 0. It is Odradek's own; Kafka has no such API."""

from odradek.protocol.messages.create_streams import StreamPermission, StreamSetting
from odradek.protocol.schema import UUID, Request, Response, Struct, array, boolean, int16, int32, string, uuid


class DescribeStreamsRequest(Request, api_key=10006, versions=(0, 0), flexible=0):
    """`paths` is null for all streams."""

    paths: list[str] | None = array(string(), nullable="0+", default=None)


class DescribedStream(Struct):
    """`permissions` are empty for those who may not administer the stream."""

    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)
    path: str = string()
    stream_id: UUID = uuid()
    owner: str = string()
    default_partitions: int = int32()
    creates_topics: bool = boolean()
    settings: list[StreamSetting] = array(StreamSetting)
    permissions: list[StreamPermission] = array(StreamPermission)
    topic_count: int = int32()
    partition_count: int = int32()


class DescribeStreamsResponse(Response, api_key=10006, versions=(0, 0), flexible=0):
    throttle_time_ms: int = int32()
    streams: list[DescribedStream] = array(DescribedStream)
