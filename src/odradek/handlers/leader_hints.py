"""Leader hints (KIP-951): the current leader of a partition, beside the error that says that the client's metadata is
outdated, and the leader's address. They save the client a Metadata request."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.handlers.broker_endpoints import reachable_brokers
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages import fetch, produce
from odradek.protocol.sentinels import NO_LEADER

if TYPE_CHECKING:
    from odradek.handlers.context import RequestContext
    from odradek.metadata.entities import BrokerImage, PartitionImage, TopicImage
    from odradek.protocol.messages.fetch import FetchResponse
    from odradek.protocol.messages.produce import ProduceResponse

FIRST_FETCH_VERSION_WITH_HINTS = 16
FIRST_PRODUCE_VERSION_WITH_HINTS = 10
_OUTDATED = (ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.NOT_LEADER_OR_FOLLOWER)


def add_leader_hints(response: FetchResponse, context: RequestContext) -> None:
    """Set the leader of each partition with an error of `_OUTDATED`, and add the address of each such leader once."""
    if context.api_version < FIRST_FETCH_VERSION_WITH_HINTS:
        return
    leaders = set()
    for topic in response.responses:
        known = context.services.image.topic_by_id(topic.topic_id)
        for data in topic.partitions:
            partition = _moved_partition(known, data.partition_index, data.error_code, context)
            if partition is not None:
                data.current_leader = fetch.LeaderIdAndEpoch(
                    leader_id=partition.leader, leader_epoch=partition.leader_epoch
                )
                leaders.add(partition.leader)
    for broker, host, port in _endpoints(leaders, context):
        response.node_endpoints.append(
            fetch.NodeEndpoint(node_id=broker.node_id, host=host, port=port, rack=broker.rack)
        )


def add_produce_leader_hints(response: ProduceResponse, context: RequestContext) -> None:
    """The same for Produce."""
    if context.api_version < FIRST_PRODUCE_VERSION_WITH_HINTS:
        return
    leaders = set()
    for topic in response.responses:
        for answer in topic.partition_responses:
            if answer.error_code not in _OUTDATED:  # `_moved_partition` checks it too, but a call takes longer
                continue
            image = context.services.image
            known = image.topics.get(topic.name) or image.topic_by_id(topic.topic_id)
            partition = _moved_partition(known, answer.index, answer.error_code, context)
            if partition is not None:
                answer.current_leader = produce.LeaderIdAndEpoch(
                    leader_id=partition.leader, leader_epoch=partition.leader_epoch
                )
                leaders.add(partition.leader)
    for broker, host, port in _endpoints(leaders, context):
        response.node_endpoints.append(
            produce.NodeEndpoint(node_id=broker.node_id, host=host, port=port, rack=broker.rack)
        )


def _moved_partition(
    topic: TopicImage | None, index: int, error_code: int, context: RequestContext
) -> PartitionImage | None:
    """The partition, if the error says that the client used another leader epoch, or another broker than the leader."""
    if topic is None or not 0 <= index < len(topic.partitions) or error_code not in _OUTDATED:
        return None
    partition = topic.partitions[index]
    is_led_here = partition.leader == context.services.config.node_id
    if partition.leader == NO_LEADER or (error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER and is_led_here):
        return None
    return partition


def _endpoints(leaders: set[int], context: RequestContext) -> list[tuple[BrokerImage, str, int]]:
    if not leaders:
        return []
    reachable = reachable_brokers(context)
    found = [reachable[leader] for leader in sorted(leaders) if leader in reachable]
    return [(broker, host, port) for broker, (host, port) in found]
