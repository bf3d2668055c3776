"""AlterPartition, API 56: versions 2 to 3."""

from odradek.protocol.schema import UUID, Request, Response, Struct, array, int8, int16, int32, int64, uuid


class BrokerState(Struct):
    broker_id: int = int32(versions="3+")
    broker_epoch: int = int64(versions="3+", default=-1)


class PartitionData(Struct):
    partition_index: int = int32()
    leader_epoch: int = int32()
    new_isr: list[int] = array(int32(), versions="0-2")
    new_isr_with_epochs: list[BrokerState] = array(BrokerState, versions="3+")
    leader_recovery_state: int = int8(versions="1+")
    partition_epoch: int = int32()


class TopicData(Struct):
    topic_id: UUID = uuid(versions="2+")
    partitions: list[PartitionData] = array(PartitionData)


class AlterPartitionRequest(Request, api_key=56, versions=(2, 3), flexible=0):
    elements_per_level = 40_000  # a leader sends one for all its partitions

    broker_id: int = int32()
    broker_epoch: int = int64(default=-1)
    topics: list[TopicData] = array(TopicData)


class AlteredPartition(Struct):
    partition_index: int = int32()
    error_code: int = int16()
    leader_id: int = int32()
    leader_epoch: int = int32()
    isr: list[int] = array(int32())
    leader_recovery_state: int = int8(versions="1+")
    partition_epoch: int = int32()


class AlteredTopic(Struct):
    topic_id: UUID = uuid(versions="2+")
    partitions: list[AlteredPartition] = array(AlteredPartition)


class AlterPartitionResponse(Response, api_key=56, versions=(2, 3), flexible=0):
    throttle_time_ms: int = int32()
    error_code: int = int16()
    topics: list[AlteredTopic] = array(AlteredTopic)
