"""BrokerHeartbeat, API 63: versions 0 to 2.

`offline_replicas` is a tagged field that Kafka does not have: replicas on log directories that failed.
"""

from odradek.protocol.schema import UUID, Request, Response, Struct, array, boolean, int16, int32, int64, uuid


class OfflineTopic(Struct):
    topic_id: UUID = uuid()
    partition_indexes: list[int] = array(int32())


class BrokerHeartbeatRequest(Request, api_key=63, versions=(0, 2), flexible=0):
    elements_per_level = 40_000  # a broker reports all replicas of a failed log directory

    broker_id: int = int32()
    broker_epoch: int = int64(default=-1)
    current_metadata_offset: int = int64()
    want_fence: bool = boolean()
    want_shut_down: bool = boolean()
    offline_log_dirs: list[UUID] = array(uuid(), versions="1+", tag=0, tagged="1+")
    cordoned_log_dirs: list[UUID] | None = array(uuid(), versions="2+", nullable="2+", default=None, tag=1, tagged="2+")
    offline_replicas: list[OfflineTopic] = array(OfflineTopic, tag=1000, tagged="0+")


class BrokerHeartbeatResponse(Response, api_key=63, versions=(0, 2), flexible=0):
    throttle_time_ms: int = int32()
    error_code: int = int16()
    is_caught_up: bool = boolean()
    is_fenced: bool = boolean(default=True)
    should_shut_down: bool = boolean()
