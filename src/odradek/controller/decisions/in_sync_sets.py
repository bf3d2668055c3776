"""AlterPartition: a leader proposes the in-sync set of its partitions. Pure.

Checks have Apache Kafka's order and error codes. A proposal names the broker epoch of each member, so that a broker
which has restarted is not counted by the progress of its earlier registration (KIP-903).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from odradek.controller.decisions.partition_change import Intention, change_partition
from odradek.controller.decisions.partition_drafts import PartitionDrafts, find_partition
from odradek.controller.decisions.partition_rules import TopicRules
from odradek.protocol.errors import ErrorCode
from odradek.protocol.sentinels import NO_BROKER_EPOCH, NO_EPOCH

if TYPE_CHECKING:
    import uuid
    from collections.abc import Sequence

    from odradek.controller.decisions.topics import Cluster
    from odradek.metadata.changes import Change
    from odradek.metadata.entities import PartitionImage
    from odradek.metadata.image import MetadataImage


class InSyncProposal(NamedTuple):
    """`partition_epoch` is that of the metadata which the proposal changes; `in_sync_replicas` has the node id and the
    broker epoch of each member, the leader included. −1 is an epoch that is not checked."""

    topic_id: uuid.UUID
    partition_index: int
    leader_epoch: int
    partition_epoch: int
    in_sync_replicas: tuple[tuple[int, int], ...]
    is_recovering: bool = False


class InSyncResult(NamedTuple):
    """The partition's state after the change if there is no error."""

    error: ErrorCode
    leader_epoch: int = NO_EPOCH
    partition_epoch: int = NO_EPOCH
    in_sync_replicas: tuple[int, ...] = ()


def decide_in_sync_changes(
    node_id: int, broker_epoch: int, proposals: Sequence[InSyncProposal], cluster: Cluster
) -> tuple[list[InSyncResult] | ErrorCode, list[Change]]:
    """A result for each proposal in its order, or the error of the whole request."""
    image = cluster.image
    sender = image.brokers.get(node_id)
    if sender is None or sender.broker_epoch != broker_epoch:
        return ErrorCode.STALE_BROKER_EPOCH, []
    rules = TopicRules(image, cluster.config)
    drafts = PartitionDrafts()
    results: list[InSyncResult] = []
    for proposal in proposals:
        topic = image.topic_by_id(proposal.topic_id)
        if topic is None:
            results.append(InSyncResult(ErrorCode.UNKNOWN_TOPIC_ID))
            continue
        partition = find_partition(topic, proposal.partition_index)
        if partition is None:
            results.append(InSyncResult(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
            continue
        error = _check(proposal, partition, node_id, image)
        if error is ErrorCode.NONE and drafts.has_changed(topic, proposal.partition_index):
            error = ErrorCode.INVALID_UPDATE_VERSION
        if error is not ErrorCode.NONE:
            results.append(InSyncResult(error))
            continue
        topic_rules = rules.of(topic)
        in_sync = tuple(member for member, _ in proposal.in_sync_replicas)
        changed = change_partition(
            partition, Intention(election=topic_rules.automatic_election, in_sync=in_sync), topic_rules
        )
        if changed is not None:
            drafts.add(topic, changed)
        results.append(_result(changed or partition, node_id))
    return results, drafts.changes()


def _result(partition: PartitionImage, proposer: int) -> InSyncResult:
    if partition.leader != proposer:
        # The proposal completed a reassignment which removes the leader: it was accepted, and another broker leads.
        return InSyncResult(ErrorCode.NEW_LEADER_ELECTED)
    return InSyncResult(ErrorCode.NONE, partition.leader_epoch, partition.partition_epoch, partition.in_sync_replicas)


def _check(proposal: InSyncProposal, partition: PartitionImage, proposer: int, image: MetadataImage) -> ErrorCode:
    if proposal.leader_epoch > partition.leader_epoch or proposal.partition_epoch > partition.partition_epoch:
        return ErrorCode.NOT_CONTROLLER  # the leader has seen a later commit than this controller
    if proposal.leader_epoch < partition.leader_epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    if proposer != partition.leader:
        return ErrorCode.INVALID_REQUEST
    if proposal.partition_epoch < partition.partition_epoch:
        return ErrorCode.INVALID_UPDATE_VERSION
    members = [member for member, _ in proposal.in_sync_replicas]
    is_valid_set = len(set(members)) == len(members) and set(members) <= set(partition.replicas)
    if not is_valid_set or partition.leader not in members or proposal.is_recovering:
        return ErrorCode.INVALID_REQUEST
    if not all(_may_join(*member, image) for member in proposal.in_sync_replicas):
        return ErrorCode.INELIGIBLE_REPLICA
    return ErrorCode.NONE


def _may_join(node_id: int, broker_epoch: int, image: MetadataImage) -> bool:
    broker = image.brokers.get(node_id)
    return broker is not None and broker.is_active and broker_epoch in (NO_BROKER_EPOCH, broker.broker_epoch)
