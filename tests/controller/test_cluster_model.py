"""A cluster of brokers under any sequence of deaths, returns, in-sync proposals, elections, reassignments and changes
of topics: what must hold after every commit of the controller."""

from collections.abc import Sequence

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from odradek.configuration.config_types import ConfigResourceType
from odradek.controller.decisions.brokers import (
    LiveBroker,
    decide_fencing,
    decide_live_brokers,
    decide_shutdown,
    decide_unfencing,
    decide_unregistration,
)
from odradek.controller.decisions.in_sync_sets import InSyncProposal, InSyncResult, decide_in_sync_changes
from odradek.controller.decisions.leader_election import ElectionKind
from odradek.controller.decisions.partition_repair import decide_repairs
from odradek.controller.decisions.reassignment_requests import NewReplicas, decide_reassignments, list_reassignments
from odradek.controller.decisions.replica_replacement import decide_replacements
from odradek.controller.decisions.requested_elections import decide_elections, decide_preferred_leaders
from odradek.controller.decisions.topic_deletion import decide_deletions
from odradek.controller.decisions.topics import NewPartitions, NewTopic, decide_partitions, decide_topic
from odradek.metadata.change_codec import decode_changes, encode_changes
from odradek.metadata.changes import Change, ConfigsChanged, FeatureLevelChanged, PartitionsChanged
from odradek.metadata.entities import PartitionImage
from odradek.metadata.features import ELIGIBLE_LEADER_REPLICAS
from odradek.metadata.image import MetadataImage
from odradek.protocol.errors import ErrorCode
from odradek.protocol.refusal import Refusal
from odradek.protocol.sentinels import NO_LEADER
from tests.controller.clusters import after, broker, cluster_of, image_of
from tests.example_counts import examples

BROKERS = range(1, 6)
HOSTS = {1: "a", 2: "a", 3: "b", 4: "c", 5: "c"}
NAMES = ("t", "u")
nodes = st.sampled_from(BROKERS)
names = st.sampled_from(NAMES)
indexes = st.integers(0, 2)


class ClusterMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.cluster = cluster_of(image_of([]), min_insync_replicas="2")
        self.proposed: frozenset[int] = frozenset()  # brokers that the leader has proposed for the in-sync set
        self.lost: frozenset[int] = frozenset()  # brokers that may have lost records
        self.next_epoch = 0
        self.is_reassigning = False
        self.latest: dict[tuple[object, int], PartitionImage] = {}
        self.targets: dict[tuple[object, int], frozenset[int]] = {}

    @initialize()
    def start(self) -> None:
        self.follow_registrations(frozenset(BROKERS), True, frozenset(), 0)
        self.create("t", 3)

    # Changes

    def commit(self, changes: Sequence[Change], *, may_be_unclean: bool = False) -> None:
        if not changes:
            return
        assert decode_changes(encode_changes(changes)) == list(changes)
        for change in changes:
            self.check_epochs(change)
        before, self.cluster = self.cluster, after(self.cluster, changes)
        for topic in self.cluster.image.topics.values():
            known = before.image.topic_by_id(topic.topic_id)
            for old, new in zip(known.partitions if known else (), topic.partitions, strict=False):
                self.check_step(topic.name, old, new, may_be_unclean=may_be_unclean)

    def check_epochs(self, change: Change) -> None:
        """Each change of a partition raises its partition epoch by one, and its leader epoch if the leader changes."""
        if not isinstance(change, PartitionsChanged):
            return
        for new in change.partitions:
            old = self.latest.get((change.topic_id, new.index))
            known = self.cluster.image.topics_by_id.get(change.topic_id)
            old = old or (known.partitions[new.index] if known else None)
            if old is not None and old.partition_epoch + 1 == new.partition_epoch:
                assert new.leader_epoch - old.leader_epoch in (0, 1)
                assert new.leader == old.leader or new.leader_epoch == old.leader_epoch + 1
            self.latest[change.topic_id, new.index] = new

    def check_step(self, name: str, old: PartitionImage, new: PartitionImage, *, may_be_unclean: bool) -> None:
        if new == old:
            return
        if new.leader != old.leader:
            assert new.leader_epoch > old.leader_epoch
        if old.adding_replicas and not new.adding_replicas and not self.is_reassigning:
            assert set(old.adding_replicas) <= set(new.in_sync_replicas), "completed when the new replicas are in sync"
        if new.leader in (NO_LEADER, old.leader):
            return
        has_records = {*old.in_sync_replicas, *old.eligible_leader_replicas} - self.lost
        last_known = (old.leader,) if old.leader != NO_LEADER else old.last_known_eligible_leader_replicas
        if not self.keeps_eligible_leaders:
            last_known = old.in_sync_replicas
        is_last_known = not has_records and new.leader in last_known
        allows_unclean = may_be_unclean or self.allows_unclean(name)
        assert new.leader in has_records | self.proposed or is_last_known or allows_unclean

    @property
    def keeps_eligible_leaders(self) -> bool:
        return self.cluster.image.feature_level(ELIGIBLE_LEADER_REPLICAS) == 1

    def allows_unclean(self, name: str) -> bool:
        values = self.cluster.image.configs_of(ConfigResourceType.TOPIC, name)
        return values.get("unclean.leader.election.enable") == "true"

    @rule(
        restarted=st.frozensets(nodes),
        is_clean=st.booleans(),
        gone=st.frozensets(nodes, max_size=3),
        uncommitted=st.integers(0, 2),
    )
    def follow_registrations(
        self, restarted: frozenset[int], is_clean: bool, gone: frozenset[int], uncommitted: int
    ) -> None:
        """Any brokers have registered again, also more than once, and any are gone, when the controller looks."""
        present = self.cluster.image.brokers
        live: dict[int, LiveBroker] = {}
        lost: list[int] = []
        for node_id in BROKERS:
            if node_id in gone:
                continue
            known = present.get(node_id)
            if known is not None and node_id not in restarted:
                live[node_id] = LiveBroker(known, [])
                continue
            self.next_epoch += 1 + uncommitted
            previous = [*range(self.next_epoch - uncommitted, self.next_epoch)] if known is not None else []
            if is_clean and known is not None:
                previous.insert(0, known.broker_epoch)
            live[node_id] = LiveBroker(broker(node_id, epoch=self.next_epoch, host=HOSTS[node_id]), previous)
            if known is None or known.broker_epoch not in previous:
                lost.append(node_id)
        before = self.cluster.image
        self.lost = frozenset(lost)
        decision = decide_live_brokers(live, self.cluster)
        self.commit(decision.changes)
        self.lost = frozenset()
        assert decision.is_complete
        self.check_restarted({node_id for node_id in live if node_id in present and node_id in restarted}, before)
        assert decide_live_brokers(live, self.cluster).changes == []
        for node_id, broker_image in self.cluster.image.brokers.items():
            is_new = node_id in live and broker_image.broker_epoch != getattr(
                present.get(node_id), "broker_epoch", None
            )
            assert broker_image.is_fenced == (node_id not in live or (not is_new and before.brokers[node_id].is_fenced))

    def check_restarted(self, restarted: set[int], before: MetadataImage) -> None:
        """A broker that has restarted is in sync only where it leads with a new leader epoch."""
        for name, topic in self.cluster.image.topics.items():
            for old, new in zip(before.topics[name].partitions, topic.partitions, strict=True):
                for node_id in restarted & set(new.in_sync_replicas):
                    assert new.leader == node_id
                    assert new.leader_epoch > old.leader_epoch

    @rule(node_id=nodes)
    def unfence(self, node_id: int) -> None:
        present = self.cluster.image.brokers.get(node_id)
        if present is not None:
            self.commit(decide_unfencing(node_id, present.broker_epoch, self.cluster).changes)
            assert not self.cluster.image.brokers[node_id].is_fenced

    @rule(node_id=nodes, is_current=st.booleans())
    def suspect(self, node_id: int, is_current: bool) -> None:
        present = self.cluster.image.brokers.get(node_id)
        if present is not None:
            decision = decide_fencing({node_id: present.broker_epoch - (not is_current)}, self.cluster)
            assert is_current or not decision.changes
            self.commit(decision.changes)

    @rule(node_id=nodes)
    def shut_down(self, node_id: int) -> None:
        present = self.cluster.image.brokers.get(node_id)
        if present is not None:
            self.commit(decide_shutdown(node_id, present.broker_epoch, self.cluster).changes)

    @rule(node_id=nodes)
    def unregister(self, node_id: int) -> None:
        decision = decide_unregistration(node_id, self.cluster)
        if not isinstance(decision, Refusal):
            self.commit(decision.changes)

    @rule(name=names, factor=st.integers(1, 5))
    def create(self, name: str, factor: int) -> None:
        decision = decide_topic(NewTopic(name=name, partition_count=2, replication_factor=factor), self.cluster)
        if not isinstance(decision, Refusal):
            self.commit(decision[1])

    @rule(name=names)
    def grow(self, name: str) -> None:
        topic = self.cluster.image.topics.get(name)
        if topic is not None and len(topic.partitions) < 3:
            decision = decide_partitions(NewPartitions(name=name, count=3), self.cluster)
            if not isinstance(decision, Refusal):
                self.commit(decision)

    @rule(name=names)
    def delete(self, name: str) -> None:
        _, changes = decide_deletions(self.cluster.image, [name], [], is_enabled=True)
        self.commit(changes)

    @rule(name=names, is_allowed=st.booleans(), minimum=st.integers(1, 3))
    def configure(self, name: str, is_allowed: bool, minimum: int) -> None:
        if name in self.cluster.image.topics:
            values = {
                "unclean.leader.election.enable": str(is_allowed).lower(),
                "min.insync.replicas": str(minimum),
            }
            self.commit([ConfigsChanged(ConfigResourceType.TOPIC, name, values)])
            self.commit(decide_repairs(self.cluster.image, self.cluster.config).changes)  # as the controller does

    @rule(level=st.integers(0, 1))
    def set_level_of_eligible_leaders(self, level: int) -> None:
        self.commit([FeatureLevelChanged(ELIGIBLE_LEADER_REPLICAS, level)])
        self.commit(decide_repairs(self.cluster.image, self.cluster.config).changes)  # as the controller does

    @rule(name=names, index=indexes, members=st.frozensets(nodes), stale=st.sampled_from(["", "leader", "member"]))
    def propose(self, name: str, index: int, members: frozenset[int], stale: str) -> None:
        """The leader's own proposal, which may name brokers that have gone or have registered anew."""
        topic = self.cluster.image.topics.get(name)
        if topic is None or index >= len(topic.partitions) or topic.partitions[index].leader == NO_LEADER:
            return
        partition = topic.partitions[index]
        brokers = self.cluster.image.brokers
        in_sync = [node for node in partition.replicas if node in members or node == partition.leader]
        epochs = tuple((node, brokers[node].broker_epoch if node in brokers else 0) for node in in_sync)
        if stale == "member":
            epochs = tuple((node, epoch - 1) for node, epoch in epochs)
        proposal = InSyncProposal(
            topic.topic_id, index, partition.leader_epoch - (stale == "leader"), partition.partition_epoch, epochs
        )
        results, changes = decide_in_sync_changes(
            partition.leader, brokers[partition.leader].broker_epoch, [proposal], self.cluster
        )
        assert isinstance(results, list)
        if stale:
            assert results[0].error in (ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.INELIGIBLE_REPLICA)
        elif not all(node in brokers and brokers[node].is_active for node in in_sync):
            assert results == [InSyncResult(ErrorCode.INELIGIBLE_REPLICA)]
        else:
            assert results[0].error in (ErrorCode.NONE, ErrorCode.NEW_LEADER_ELECTED)
        assert bool(changes) <= (results[0].error in (ErrorCode.NONE, ErrorCode.NEW_LEADER_ELECTED))
        self.proposed = frozenset(in_sync)
        self.commit(changes)
        self.proposed = frozenset()

    @rule(kind=st.sampled_from([ElectionKind.PREFERRED, ElectionKind.UNCLEAN]))
    def elect(self, kind: ElectionKind) -> None:
        results, changes = decide_elections(kind, None, self.cluster)
        self.commit(changes, may_be_unclean=kind is ElectionKind.UNCLEAN)
        for result in results:
            partition = self.cluster.image.topics[result.topic].partitions[result.partition_index]
            assert result.refusal is not None or partition.leader != NO_LEADER

    @rule()
    def give_back_leaders(self) -> None:
        _, changes = decide_preferred_leaders(self.cluster)
        self.commit(changes)
        assert decide_preferred_leaders(self.cluster) == (0, [])

    @rule(name=names, index=indexes, new=st.lists(nodes, unique=True, min_size=1, max_size=4))
    def reassign(self, name: str, index: int, new: list[int]) -> None:
        before = self.cluster.image
        (result,), changes = decide_reassignments([NewReplicas(name, index, tuple(new))], self.cluster)
        self.is_reassigning = True
        self.commit(changes)
        self.is_reassigning = False
        if result.refusal is None:
            topic = self.cluster.image.topics[name]
            partition = topic.partitions[index]
            if not partition.adding_replicas:
                assert set(new) - set(before.topics[name].partitions[index].replicas) <= set(partition.in_sync_replicas)
            self.targets[topic.topic_id, index] = frozenset(new)

    @rule(name=names, index=indexes)
    def cancel(self, name: str, index: int) -> None:
        (result,), changes = decide_reassignments([NewReplicas(name, index, None)], self.cluster)
        self.is_reassigning = True
        self.commit(changes)
        self.is_reassigning = False
        if result.refusal is None:
            partition = self.cluster.image.topics[name].partitions[index]
            assert not partition.adding_replicas + partition.removing_replicas
            self.targets.pop((self.cluster.image.topics[name].topic_id, index), None)

    @rule(absent=st.frozensets(nodes, max_size=2))
    def replace_replicas(self, absent: frozenset[int]) -> None:
        count, changes = decide_replacements(absent, self.cluster)
        self.commit(changes)
        assert bool(count) == bool(changes)
        for topic in self.cluster.image.topics.values():
            for partition in topic.partitions:
                key = (topic.topic_id, partition.index)
                if count and partition.adding_replicas and key not in self.targets:
                    assert all(self.cluster.image.brokers[each].is_active for each in partition.adding_replicas)
                    self.targets[key] = frozenset(partition.replicas) - frozenset(partition.removing_replicas)

    # What must hold

    @invariant()
    def partitions_are_sound(self) -> None:
        active = {
            each.node_id
            for each in self.cluster.image.brokers.values()
            if not each.is_fenced and not each.is_shutting_down
        }
        for topic in self.cluster.image.topics.values():
            for partition in topic.partitions:
                in_sync = partition.in_sync_replicas
                assert partition.replicas, partition
                assert len(set(partition.replicas)) == len(partition.replicas)
                assert set(in_sync) <= set(partition.replicas)
                if self.keeps_eligible_leaders:
                    assert partition.leader != NO_LEADER or not in_sync
                else:
                    assert not partition.eligible_leader_replicas
                assert partition.leader == NO_LEADER or set(in_sync) <= active
                assert set(partition.eligible_leader_replicas) <= set(partition.replicas) - set(in_sync)
                assert partition.leader == NO_LEADER or partition.leader in in_sync
                assert set(partition.adding_replicas + partition.removing_replicas) <= set(partition.replicas)

    @invariant()
    def reassignments_end_with_their_target(self) -> None:
        image = self.cluster.image
        running = {
            (image.topics[name].topic_id, partition.index)
            for name, partitions in list_reassignments(image).items()
            for partition in partitions
        }
        for key, target in list(self.targets.items()):
            topic_id, index = key
            topic = image.topics_by_id.get(topic_id)  # type: ignore[call-overload]  # the key of a dict of tuples
            if topic is None:
                del self.targets[key]
            elif key not in running:
                assert set(topic.partitions[index].replicas) == target
                del self.targets[key]

    @invariant()
    def nothing_is_left_to_repair_but_by_a_new_setting(self) -> None:
        repairs = decide_repairs(self.cluster.image, self.cluster.config)
        before = self.cluster
        self.commit(repairs.changes)
        assert repairs.is_complete
        assert decide_repairs(self.cluster.image, self.cluster.config).changes == []
        for topic in self.cluster.image.topics.values():
            known = before.image.topics[topic.name]
            assert known == topic or self.allows_unclean(topic.name) or known.partitions[0].leader == NO_LEADER


TestCluster = ClusterMachine.TestCase
TestCluster.settings = settings(
    max_examples=examples(75), stateful_step_count=40, deadline=None, suppress_health_check=list(HealthCheck)
)
