"""OffsetFetch, API 9: versions 1 to 10."""

from odradek.protocol.schema import (
    UUID,
    Request,
    Response,
    Struct,
    array,
    boolean,
    int16,
    int32,
    int64,
    string,
    topic_name,
    uuid,
)


class OffsetFetchRequestTopic(Struct):
    name: str = topic_name(versions="0-7")
    partition_indexes: list[int] = array(int32(), versions="0-7")


class OffsetFetchRequestTopics(Struct):
    name: str = topic_name(versions="8-9")
    topic_id: UUID = uuid(versions="10+")
    partition_indexes: list[int] = array(int32(), versions="8+")


class OffsetFetchRequestGroup(Struct):
    group_id: str = string(versions="8+")
    member_id: str | None = string(versions="9+", nullable="9+", default=None)
    member_epoch: int = int32(versions="9+", default=-1)
    topics: list[OffsetFetchRequestTopics] | None = array(OffsetFetchRequestTopics, versions="8+", nullable="8+")


class OffsetFetchRequest(Request, api_key=9, versions=(1, 10), flexible=6):
    group_id: str = string(versions="0-7")
    topics: list[OffsetFetchRequestTopic] | None = array(OffsetFetchRequestTopic, versions="0-7", nullable="2-7")
    groups: list[OffsetFetchRequestGroup] = array(OffsetFetchRequestGroup, versions="8+")
    require_stable: bool = boolean(versions="7+")


class OffsetFetchResponsePartition(Struct):
    partition_index: int = int32(versions="0-7")
    committed_offset: int = int64(versions="0-7")
    committed_leader_epoch: int = int32(versions="5-7", default=-1)
    metadata: str | None = string(versions="0-7", nullable="0-7")
    error_code: int = int16(versions="0-7")


class OffsetFetchResponseTopic(Struct):
    name: str = topic_name(versions="0-7")
    partitions: list[OffsetFetchResponsePartition] = array(OffsetFetchResponsePartition, versions="0-7")


class OffsetFetchResponsePartitions(Struct):
    partition_index: int = int32(versions="8+")
    committed_offset: int = int64(versions="8+")
    committed_leader_epoch: int = int32(versions="8+", default=-1)
    metadata: str | None = string(versions="8+", nullable="8+")
    error_code: int = int16(versions="8+")


class OffsetFetchResponseTopics(Struct):
    name: str = topic_name(versions="8-9")
    topic_id: UUID = uuid(versions="10+")
    partitions: list[OffsetFetchResponsePartitions] = array(OffsetFetchResponsePartitions, versions="8+")


class OffsetFetchResponseGroup(Struct):
    group_id: str = string(versions="8+")
    topics: list[OffsetFetchResponseTopics] = array(OffsetFetchResponseTopics, versions="8+")
    error_code: int = int16(versions="8+")


class OffsetFetchResponse(Response, api_key=9, versions=(1, 10), flexible=6):
    throttle_time_ms: int = int32(versions="3+")
    topics: list[OffsetFetchResponseTopic] = array(OffsetFetchResponseTopic, versions="0-7")
    error_code: int = int16(versions="2-7")
    groups: list[OffsetFetchResponseGroup] = array(OffsetFetchResponseGroup, versions="8+")
