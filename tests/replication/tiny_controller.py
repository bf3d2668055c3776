"""A controller for simulated brokers, in one piece of memory that every broker reaches unless it is cut off.

It decides as a real one: elections by in-sync and eligible replicas (KIP-966), in-sync sets by the epochs of leaders,
partitions and brokers (KIP-497, KIP-903). It loses nothing and never fails: the brokers are under test.
"""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import replace
from uuid import UUID

from odradek.configuration.listeners import Endpoint
from odradek.controller.decisions.in_sync_sets import InSyncProposal, InSyncResult
from odradek.metadata.changes import BrokerRegistered, BrokerRemoved, Change, PartitionsChanged, TopicCreated
from odradek.metadata.entities import BrokerImage, PartitionImage, TopicImage
from odradek.metadata.image import MetadataImage
from odradek.protocol.errors import ErrorCode
from odradek.protocol.sentinels import NO_LEADER

MIN_IN_SYNC = 2
PORT = 9092


def machine_of(node_id: int) -> str:
    return f"broker-{node_id}"


class TinyController:
    def __init__(self) -> None:
        self.image = MetadataImage(version=0, cluster_id="simulated", controller_id=0)
        self.has_changed = asyncio.Event()
        self.note: Callable[[str], None] = lambda _: None

    def commit(self, changes: Iterable[Change]) -> None:
        self.image = self.image.apply_all(changes)
        self.has_changed.set()
        self.has_changed = asyncio.Event()

    def create_topic(self, name: str, partition_count: int, replicas: tuple[int, ...]) -> None:
        partitions = []
        for index in range(partition_count):
            turned = replicas[index % len(replicas) :] + replicas[: index % len(replicas)]
            partitions.append(PartitionImage(index, turned, turned, turned[0], 0, 0))
        topic_id = UUID(int=1000 + len(self.image.topics))
        self.commit([TopicCreated(TopicImage(name, topic_id, tuple(partitions), is_internal=False))])

    # Brokers

    def register(self, node_id: int, *, has_lost_records: bool) -> int:
        """The broker epoch. A broker that may have lost records leaves every set before it may lead."""
        self.fence(node_id)
        epoch = self.image.version + 1
        if has_lost_records:
            self._change_all(lambda partition: self._without(partition, node_id, stays_eligible=False))
            epoch = self.image.version + 1
        endpoints = {"PLAINTEXT": Endpoint(machine_of(node_id), PORT)}
        self.commit([BrokerRegistered(BrokerImage(node_id, endpoints, broker_epoch=epoch))])
        self._change_all(self._elected)
        return epoch

    def fence(self, node_id: int) -> None:
        broker = self.image.brokers.get(node_id)
        if broker is not None:
            self.commit([BrokerRemoved(node_id, broker.broker_epoch)])
            self._change_all(lambda partition: self._without(partition, node_id, stays_eligible=True))

    def move_leader(self, topic: str, index: int, node_id: int) -> None:
        """To another member of the in-sync set."""
        partition = self.image.topics[topic].partitions[index]
        if node_id in partition.in_sync_replicas and node_id in self.image.brokers and node_id != partition.leader:
            self._change_all(lambda each: replace(each, leader=node_id) if each is partition else each)

    def _change_all(self, decide: Callable[[PartitionImage], PartitionImage]) -> None:
        """A leader epoch has one leader: it rises with every change of the leader."""
        changes = []
        for topic in self.image.topics.values():
            changed = []
            for before in topic.partitions:
                after = self._elected(decide(before))
                if after is not before and after != before:
                    is_other = after.leader != before.leader
                    after = replace(
                        after,
                        leader_epoch=before.leader_epoch + (1 if is_other else 0),
                        partition_epoch=before.partition_epoch + 1,
                    )
                    changed.append(after)
                    self.note(f"{topic.name}-{after.index}: {_described(after)}")
            if changed:
                changes.append(PartitionsChanged(topic.topic_id, tuple(changed)))
        if changes:
            self.commit(changes)

    def _without(self, partition: PartitionImage, node_id: int, *, stays_eligible: bool) -> PartitionImage:
        in_sync = tuple(each for each in partition.in_sync_replicas if each != node_id)
        eligible = set(partition.eligible_leader_replicas)
        if node_id in partition.in_sync_replicas:
            eligible = eligible | {node_id} if len(in_sync) < MIN_IN_SYNC else set()
        if not stays_eligible:
            eligible -= {node_id}
        leader = NO_LEADER if partition.leader == node_id else partition.leader
        return replace(
            partition, in_sync_replicas=in_sync, eligible_leader_replicas=tuple(sorted(eligible)), leader=leader
        )

    def _elected(self, partition: PartitionImage) -> PartitionImage:
        if partition.leader != NO_LEADER:
            return partition
        living = self.image.brokers
        for candidate in partition.replicas:
            if candidate in partition.in_sync_replicas and candidate in living:
                return replace(partition, leader=candidate)
        for candidate in partition.replicas:
            if candidate in partition.eligible_leader_replicas and candidate in living:
                eligible = tuple(each for each in partition.eligible_leader_replicas if each != candidate)
                return replace(
                    partition, leader=candidate, in_sync_replicas=(candidate,), eligible_leader_replicas=eligible
                )
        return partition

    # In-sync sets

    def alter(self, node_id: int, proposal: InSyncProposal) -> InSyncResult:
        topic = self.image.topics_by_id[proposal.topic_id]
        partition = topic.partitions[proposal.partition_index]
        members = [member for member, _ in proposal.in_sync_replicas]
        if proposal.leader_epoch != partition.leader_epoch or partition.leader != node_id:
            return InSyncResult(ErrorCode.FENCED_LEADER_EPOCH)
        if proposal.partition_epoch != partition.partition_epoch:
            return InSyncResult(ErrorCode.INVALID_UPDATE_VERSION)
        for member, broker_epoch in proposal.in_sync_replicas:
            broker = self.image.brokers.get(member)
            if broker is None or broker.broker_epoch != broker_epoch:
                return InSyncResult(ErrorCode.INELIGIBLE_REPLICA)
        left = set(partition.in_sync_replicas) - set(members)
        eligible = set(partition.eligible_leader_replicas) | left if len(members) < MIN_IN_SYNC else set()
        changed = replace(
            partition,
            in_sync_replicas=tuple(members),
            eligible_leader_replicas=tuple(sorted(eligible - set(members))),
            partition_epoch=partition.partition_epoch + 1,
        )
        self.note(f"{topic.name}-{changed.index}: {_described(changed)}")
        self.commit([PartitionsChanged(topic.topic_id, (changed,))])
        return InSyncResult(ErrorCode.NONE, changed.leader_epoch, changed.partition_epoch, tuple(members))


def _described(partition: PartitionImage) -> str:
    return (
        f"leader {partition.leader} epoch {partition.leader_epoch}.{partition.partition_epoch} "
        f"in sync {partition.in_sync_replicas} eligible {partition.eligible_leader_replicas}"
    )
