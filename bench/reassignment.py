"""Reassignments of partitions, by requests on the wire: librdkafka's Python client has none."""

from collections.abc import Sequence

from bench.brokers import BrokerError
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignableTopic,
)
from odradek.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)
from tests.wire import WireClient

TIMEOUT_MS = 60_000


def reassign(port: int, topic: str, replicas: Sequence[Sequence[int]]) -> None:
    """Give each partition these replicas. Any broker takes the request to the controller."""
    partitions = [
        ReassignablePartition(partition_index=index, replicas=list(each)) for index, each in enumerate(replicas)
    ]
    request = AlterPartitionReassignmentsRequest(
        timeout_ms=TIMEOUT_MS, topics=[ReassignableTopic(name=topic, partitions=partitions)]
    )
    with WireClient(port) as client:
        answer = client.call(request, AlterPartitionReassignmentsResponse, 0)
    errors = {each.error_code for response in answer.responses for each in response.partitions} | {answer.error_code}
    if errors != {ErrorCode.NONE}:
        raise BrokerError(f"partitions were not reassigned: {sorted(errors)}")


def is_reassigning(port: int, topic: str) -> bool:
    with WireClient(port) as client:
        request = ListPartitionReassignmentsRequest(timeout_ms=TIMEOUT_MS, topics=None)
        answer = client.call(request, ListPartitionReassignmentsResponse, 0)
    if answer.error_code != ErrorCode.NONE:
        raise BrokerError(f"reassignments cannot be listed: {ErrorCode(answer.error_code).name}")
    return any(each.name == topic and each.partitions for each in answer.topics)
