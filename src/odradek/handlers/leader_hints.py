"""Who leads a partition, told beside the error that the client's idea of it is wrong, which saves it a Metadata request
(KIP-951). Only in Fetch: without a second broker nobody can produce to a partition that is led elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.fetch import LeaderIdAndEpoch, NodeEndpoint

if TYPE_CHECKING:
    from odradek.handlers.context import RequestContext
    from odradek.protocol.messages.fetch import FetchResponse

FIRST_VERSION_WITH_HINTS = 16


def add_leader_hints(response: FetchResponse, context: RequestContext) -> None:
    """To every partition of the answer with such an error, and to the answer the addresses of those leaders, once."""
    if context.api_version < FIRST_VERSION_WITH_HINTS:
        return
    image = context.services.image
    leaders = set()
    for topic in response.responses:
        known = image.topic_by_id(topic.topic_id)
        if known is None:
            continue
        for data in topic.partitions:
            if not 0 <= data.partition_index < len(known.partitions):
                continue
            partition = known.partitions[data.partition_index]
            if _is_outdated(data.error_code, partition.leader == context.services.config.node_id):
                data.current_leader = LeaderIdAndEpoch(leader_id=partition.leader, leader_epoch=partition.leader_epoch)
                leaders.add(partition.leader)
    for node_id in sorted(leaders & image.brokers.keys()):
        broker = image.brokers[node_id]
        host, port = broker.endpoints[context.connection.listener_name]
        response.node_endpoints.append(NodeEndpoint(node_id=node_id, host=host, port=port, rack=broker.rack))


def _is_outdated(error_code: int, leads_here: bool) -> bool:
    """Whether the client asked the leader of another time, or another broker than the leader."""
    return error_code == ErrorCode.FENCED_LEADER_EPOCH or (
        error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER and not leads_here
    )
