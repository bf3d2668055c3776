"""Consumers that read from the closest replica (KIP-392): which requests a follower serves, and where a leader sends
a consumer. `replica.selector.class` is Kafka's; only its RackAwareReplicaSelector sends consumers away."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.configuration.broker_config_table import RACK_AWARE_SELECTOR
from odradek.handlers.broker_endpoints import find_endpoint
from odradek.protocol.errors import ErrorCode
from odradek.replica.fetch_result import FetchResult
from odradek.replica.read_replica import ReadableReplica, choose_read_replica

if TYPE_CHECKING:
    from odradek.handlers.context import RequestContext
    from odradek.handlers.fetch_sessions import FetchedPartition
    from odradek.protocol.messages.fetch import FetchRequest
    from odradek.replica.partition import Partition

FIRST_VERSION_WITH_RACK = 11
FIRST_VERSION_WITH_STATE = 15
DEBUGGING_CONSUMER = -2  # kafka-replica-verification, which compares the replicas


def accepts_followers(request: FetchRequest, context: RequestContext) -> bool:
    """Whether a consumer of this kind can be answered by a replica that does not lead, as in Kafka."""
    return context.api_version >= FIRST_VERSION_WITH_RACK or request.replica_id == DEBUGGING_CONSUMER


def names_no_rack(request: FetchRequest, context: RequestContext) -> bool:
    """Such a consumer must name its leader epoch to be served by a follower: otherwise it would stay with a leader that
    was deposed, whose log may lag. A departure from Kafka."""
    replica_id = (
        request.replica_state.replica_id if context.api_version >= FIRST_VERSION_WITH_STATE else request.replica_id
    )
    return not request.rack_id and replica_id != DEBUGGING_CONSUMER


def client_rack(request: FetchRequest, context: RequestContext) -> str:
    """The rack to find a replica in; empty if the leader serves all."""
    if context.api_version < FIRST_VERSION_WITH_RACK or not request.rack_id:
        return ""
    is_rack_aware = context.services.config.replica_selector_class == RACK_AWARE_SELECTOR
    return request.rack_id if is_rack_aware else ""


def preferred_replica(
    partition: Partition, wanted: FetchedPartition, rack: str, context: RequestContext
) -> FetchResult | None:
    """The answer of a leader that names the follower to read from; None if it serves the consumer itself. The follower
    must be in sync, have the offset, and have an address on the client's listener."""
    followers = partition.followers
    if followers is None or partition.check_epoch(wanted.current_leader_epoch) is not ErrorCode.NONE:
        return None
    brokers = context.services.image.brokers
    candidates = []
    for node_id, progress in followers.in_sync.followers.items():
        has_offset = progress.log_start_offset <= wanted.fetch_offset <= progress.fetch_offset
        if node_id in followers.in_sync.confirmed and has_offset and find_endpoint(node_id, context) is not None:
            rack_of_follower = brokers[node_id].rack
            candidates.append(ReadableReplica(node_id, rack_of_follower, progress.fetch_offset, progress.caught_up_ms))
    chosen = choose_read_replica(rack, context.services.config.rack, candidates)
    if chosen is None:
        return None
    result = FetchResult(
        ErrorCode.NONE, partition.high_watermark, partition.last_stable_offset, partition.log.log_start_offset
    )
    result.preferred_read_replica = chosen
    return result
