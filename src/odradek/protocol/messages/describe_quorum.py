"""DescribeQuorum, API 55: versions 0 and 1. Clients of KRaft clusters send it; brokers of Odradek do not serve it."""

from odradek.protocol.schema import Request, Response, Struct, array, int16, int32, int64, string


class DescribeQuorumPartition(Struct):
    partition_index: int = int32()


class DescribeQuorumTopic(Struct):
    topic_name: str = string()
    partitions: list[DescribeQuorumPartition] = array(DescribeQuorumPartition)


class DescribeQuorumRequest(Request, api_key=55, versions=(0, 1), flexible=0):
    topics: list[DescribeQuorumTopic] = array(DescribeQuorumTopic)


class QuorumReplicaState(Struct):
    replica_id: int = int32()
    log_end_offset: int = int64()
    last_fetch_timestamp: int = int64(versions="1+", default=-1)
    last_caught_up_timestamp: int = int64(versions="1+", default=-1)


class DescribeQuorumPartitionResult(Struct):
    partition_index: int = int32()
    error_code: int = int16()
    leader_id: int = int32()
    leader_epoch: int = int32()
    high_watermark: int = int64()
    current_voters: list[QuorumReplicaState] = array(QuorumReplicaState)
    observers: list[QuorumReplicaState] = array(QuorumReplicaState)


class DescribeQuorumTopicResult(Struct):
    topic_name: str = string()
    partitions: list[DescribeQuorumPartitionResult] = array(DescribeQuorumPartitionResult)


class DescribeQuorumResponse(Response, api_key=55, versions=(0, 1), flexible=0):
    error_code: int = int16()
    topics: list[DescribeQuorumTopicResult] = array(DescribeQuorumTopicResult)
