"""Groups between the protocols: upgraded while they run, with members of both kinds, and downgraded again."""

from collections.abc import Set  # of sets that are never changed
from typing import Any

import pytest

from odradek.coordinator.groups.classic.group import ClassicGroup
from odradek.coordinator.groups.consumer.group import ConsumerGroup
from odradek.coordinator.groups.consumer_protocol import (
    Subscription,
    TopicPartitions,
    decode_assignment,
    encode_assignment,
)
from odradek.coordinator.groups.decision import TimerKey, TimerKind
from odradek.coordinator.groups.group import Committer
from odradek.coordinator.groups.group_settings import MigrationPolicy
from odradek.coordinator.groups.offset_operations import NewOffset
from odradek.protocol.errors import ErrorCode
from tests.coordinator.groups.consumer.consumer_bench import CONSUMER_SESSION_MS, ConsumerBench, Owned, describe
from tests.coordinator.groups.shard_bench import GROUP, REBALANCE_MS, Answer, joined, synced
from tests.coordinator.groups.test_consumer_protocol import subscription

ALL = {("topic", index) for index in range(4)}


class MixedBench(ConsumerBench):
    def __init__(self, policy: str = "bidirectional", **settings: Any) -> None:
        super().__init__(migration_policy=MigrationPolicy(policy), **settings)
        self.create_topic("topic", 4)

    def protocols(self, owned: Set[tuple[str, int]] = frozenset()) -> dict[str, bytes]:
        partitions = [TopicPartitions(topic=name, partitions=[index]) for name, index in sorted(owned)]
        parts = Subscription(topics=["topic"], owned_partitions=partitions).encode(1)
        return {"cooperative-sticky": b"\0\1" + b"".join(parts)}  # type: ignore[arg-type]  # no slices

    def join_classic(self, member_id: str, owned: Set[tuple[str, int]] = frozenset(), **fields: Any) -> Answer:
        return self.join(member_id, protocols=self.protocols(owned), **fields)

    def new_classic(self) -> tuple[str, Answer]:
        first = self.join(protocols=self.protocols())
        assert first.error is ErrorCode.MEMBER_ID_REQUIRED
        return first.response.member_id, self.join_classic(first.response.member_id)

    def form_classic(self) -> str:
        """A classic group of one, which has everything."""
        member_id, answer = self.new_classic()
        self.advance(0)
        generation = joined(answer).generation_id
        data = encode_assignment({"topic": range(4)}, b"\0\1")
        assert self.sync(member_id, generation, {member_id: data}).error is ErrorCode.NONE
        return member_id

    def synced_to(self, member_id: str) -> Owned:
        answer = synced(self.sync(member_id, self.consumers.members[member_id].epoch))
        assert answer.error_code == ErrorCode.NONE
        topics = decode_assignment(answer.assignment).assigned_partitions
        return {(each.topic, partition) for each in topics for partition in each.partitions}

    @property
    def kind(self) -> type:
        return type(self.shard.groups[GROUP])


# Up


def test_a_member_of_the_newer_protocol_upgrades_the_group() -> None:
    bench = MixedBench()
    classic_id = bench.form_classic()
    response = bench.join_consumer("a")
    assert (bench.assigned(response), response.member_epoch) == (set(), 2), "the other has everything still"
    assert bench.heartbeat(classic_id, 1) is ErrorCode.REBALANCE_IN_PROGRESS
    again = joined(bench.join_classic(classic_id, ALL))
    assert (again.generation_id, again.protocol_name, again.leader) == (1, "cooperative-sticky", "")
    kept = bench.synced_to(classic_id)
    assert len(kept) == 2
    assert bench.heartbeat(classic_id, 1) is ErrorCode.REBALANCE_IN_PROGRESS, "until it says that it gave back"
    assert joined(bench.join_classic(classic_id, kept)).generation_id == 2
    assert bench.synced_to(classic_id) == kept
    assert bench.heartbeat(classic_id, 2) is ErrorCode.NONE
    assert bench.assigned(bench.beat("a", 2)) == ALL - kept
    assert bench.consumers.state_name == "Stable"
    assert describe(bench.replayed().groups[GROUP]) == describe(bench.consumers)


def test_members_that_wait_for_a_classic_generation_must_rejoin() -> None:
    bench = MixedBench()
    bench.form_classic()
    _, waiting = bench.new_classic()
    assert waiting.response is None
    bench.join_consumer("a")
    assert waiting.error is ErrorCode.REBALANCE_IN_PROGRESS
    assert not bench.timers.is_running(TimerKey(TimerKind.JOIN, GROUP))


def test_a_group_that_has_not_had_a_generation_is_upgraded_too() -> None:
    bench = MixedBench(initial_rebalance_delay_ms=3000)
    member_id, waiting = bench.new_classic()
    assert len(bench.assigned(bench.join_consumer("a")) or ()) == 2, "no member has partitions"
    assert waiting.error is ErrorCode.REBALANCE_IN_PROGRESS
    assert set(bench.consumers.members) == {member_id, "a"}


def test_a_group_whose_members_left_before_its_first_generation_is_upgraded_too() -> None:
    bench = MixedBench(initial_rebalance_delay_ms=3000)
    member_id, _ = bench.new_classic()
    assert bench.leave((member_id, None)) == [ErrorCode.NONE]
    assert bench.assigned(bench.join_consumer("a")) == ALL
    assert set(bench.consumers.members) == {"a"}
    assert not bench.timers.is_running(TimerKey(TimerKind.JOIN, GROUP))


@pytest.mark.parametrize("policy", ["disabled", "downgrade"])
def test_no_upgrade_against_the_policy(policy: str) -> None:
    bench = MixedBench(policy)
    classic_id = bench.form_classic()
    assert bench.join_consumer("a").error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert bench.kind is ClassicGroup
    assert bench.heartbeat(classic_id, 1) is ErrorCode.NONE


@pytest.mark.parametrize("policy", list(MigrationPolicy))
def test_a_group_without_members_changes_its_kind_under_every_policy(policy: MigrationPolicy) -> None:
    bench = MixedBench(policy.value)
    topic_id = bench.image.topics["topic"].topic_id
    bench.commit(Committer(GROUP, "", None, -1, 9), [NewOffset("topic", topic_id, 0, 7, -1, "")])
    assert bench.assigned(bench.join_consumer("a")) == ALL
    bench.beat("a", -1)
    bench.form_classic()
    assert bench.kind is ClassicGroup
    committed = bench.shard.offsets.get(GROUP, "topic", 0)
    assert committed is not None
    assert committed.offset == 7
    assert isinstance(bench.replayed().groups[GROUP], ClassicGroup)


@pytest.mark.parametrize(
    ("metadata", "assignment"),
    [(b"\0\1", None), (None, b"\0\1\0"), (None, b"\0\1\0\0\0\0\0\0\0\4mine")],
    ids=["broken subscription", "broken assignment", "data of an assignor of their own"],
)
def test_what_cannot_be_read_cannot_be_upgraded(metadata: bytes | None, assignment: bytes | None) -> None:
    bench = MixedBench()
    protocols = {"mine": metadata} if metadata is not None else bench.protocols()
    member_id, answer = bench.join_new(protocols=protocols)
    bench.advance(0)
    bench.sync(member_id, joined(answer).generation_id, {member_id: assignment or b""})
    assert bench.join_consumer("a").error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert bench.kind is ClassicGroup


def test_a_group_of_connectors_is_not_upgraded() -> None:
    bench = MixedBench()
    bench.form_group(1, protocol_type="connect", protocols={"default": b"connector"})
    assert bench.join_consumer("a").error_code == ErrorCode.GROUP_ID_NOT_FOUND


# Classic members in a consumer group


def test_a_classic_member_joins_a_consumer_group() -> None:
    bench = MixedBench()
    bench.join_consumer("a")
    member_id, answer = bench.new_classic()
    assert joined(answer).generation_id == 3
    assert bench.synced_to(member_id) == set()
    kept = bench.assigned(bench.beat("a", 2, owned=ALL))
    assert kept is not None
    assert bench.heartbeat(member_id, 3) is ErrorCode.NONE, "what it waits for is not free"
    bench.beat("a", 2, owned=kept)
    assert bench.heartbeat(member_id, 3) is ErrorCode.REBALANCE_IN_PROGRESS
    assert joined(bench.join_classic(member_id)).generation_id == 3
    assert bench.synced_to(member_id) == ALL - kept


def test_a_classic_member_is_checked_like_in_a_classic_group() -> None:
    bench = MixedBench()
    bench.join_consumer("a")
    member_id, _ = bench.new_classic()
    assert bench.sync("b", 3).error is ErrorCode.UNKNOWN_MEMBER_ID
    assert bench.sync("a", 2).error is ErrorCode.UNKNOWN_MEMBER_ID, "it speaks the newer protocol"
    assert bench.sync(member_id, 2).error is ErrorCode.ILLEGAL_GENERATION
    assert bench.sync(member_id, 3, protocol_name="range").error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert bench.heartbeat(member_id, 2) is ErrorCode.ILLEGAL_GENERATION
    assert bench.heartbeat(member_id, 3, "i") is ErrorCode.UNKNOWN_MEMBER_ID
    assert bench.join(protocol_type="connect").error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert bench.join("c", protocols={"roundrobin": b"\0\1"}).error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert bench.join("c", protocols={"cooperative-sticky": b"\0"}).error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert commit(bench, member_id, 4) is ErrorCode.ILLEGAL_GENERATION
    assert bench.leave(("b", None), ("", "i")) == [ErrorCode.UNKNOWN_MEMBER_ID] * 2
    assert set(bench.consumers.members) == {"a", member_id}


def commit(bench: MixedBench, member_id: str, generation: int) -> ErrorCode:
    offset = NewOffset("topic", bench.image.topics["topic"].topic_id, 0, 7, -1, "")
    (error,) = bench.commit(Committer(GROUP, member_id, None, generation, 8), [offset])
    return error


def test_no_classic_member_when_migration_is_disabled() -> None:
    bench = MixedBench("disabled")
    bench.join_consumer("a")
    assert bench.join_classic("").error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL


@pytest.mark.parametrize("how", ["silent", "does not sync", "does not join again"])
def test_a_classic_member_that_does_not_keep_up_is_left_out(how: str) -> None:
    bench = MixedBench("upgrade")
    epoch = bench.join_consumer("a").member_epoch
    member_id, answer = bench.new_classic()
    if how != "does not sync":
        bench.synced_to(member_id)
    if how == "does not join again":
        bench.add_partition("topic")
        epoch = bench.beat("a", epoch, owned=ALL).member_epoch
    for _ in range(REBALANCE_MS // 5000 + 1):
        bench.advance(5000)
        bench.beat("a", epoch)
        if how != "silent" and member_id in bench.consumers.members:
            bench.heartbeat(member_id, joined(answer).generation_id)
    assert set(bench.consumers.members) == {"a"}


def test_a_member_changes_its_protocol_and_keeps_its_place() -> None:
    bench = MixedBench()
    bench.join_consumer("a", instance_id="i")
    bench.join_consumer("b")
    answer = joined(bench.join(instance_id="i", protocols=bench.protocols()))
    assert set(bench.consumers.members) == {answer.member_id, "b"}
    assert bench.synced_to(answer.member_id) <= ALL
    back = bench.join_consumer("c", instance_id="i")
    assert set(bench.consumers.members) == {"c", "b"}
    assert bench.assigned(back) is not None
    assert bench.consumers.members["c"].classic is None


# Down


def test_when_the_last_member_of_the_newer_protocol_leaves_the_group_is_classic() -> None:
    bench = MixedBench()
    bench.join_consumer("a")
    member_id, _ = bench.new_classic()
    bench.synced_to(member_id)
    assert bench.beat("a", -1).error_code == ErrorCode.NONE
    assert (bench.kind, bench.group.state_name, bench.group.generation) == (ClassicGroup, "PreparingRebalance", 3)
    assert bench.heartbeat(member_id, 3) is ErrorCode.REBALANCE_IN_PROGRESS
    assert joined(bench.join_classic(member_id)).generation_id == 4
    again = bench.replayed().groups[GROUP]
    assert isinstance(again, ClassicGroup)
    assert list(again.members) == [member_id]
    assert not any(isinstance(key, TimerKey) and key.member_id == "a" for key in bench.timers.deadlines)


def test_a_coordinator_that_loads_a_group_which_became_classic_rebalances_it() -> None:
    bench = MixedBench()
    bench.join_consumer("a")
    member_id, _ = bench.new_classic()
    bench.synced_to(member_id)
    bench.beat("a", -1)
    bench.restart()
    assert bench.heartbeat(member_id, 3) is ErrorCode.REBALANCE_IN_PROGRESS
    assert joined(bench.join_classic(member_id)).generation_id == 4


def test_it_is_classic_also_when_the_last_one_is_left_out() -> None:
    bench = MixedBench()
    bench.join_consumer("a")
    member_id, _ = bench.new_classic()
    bench.synced_to(member_id)
    for _ in range(CONSUMER_SESSION_MS // 5000):
        bench.heartbeat(member_id, 3)
        bench.advance(5000)
    assert bench.kind is ClassicGroup


def test_a_static_member_that_comes_back_with_the_classic_protocol_downgrades_without_a_rebalance() -> None:
    bench = MixedBench()
    bench.join_consumer("a", instance_id="i")
    answer = joined(bench.join(instance_id="i", protocols=bench.protocols()))
    assert (bench.kind, bench.group.state_name) == (ClassicGroup, "Stable")
    assert answer.generation_id == 2
    data = synced(bench.sync(answer.member_id, bench.group.generation)).assignment
    assert decode_assignment(data).assigned_partitions[0].partitions == [0, 1, 2, 3]
    assert bench.timers.is_running(TimerKey(TimerKind.SESSION, GROUP, answer.member_id))


def test_no_downgrade_against_the_policy() -> None:
    bench = MixedBench("upgrade")
    bench.join_consumer("a")
    member_id, _ = bench.new_classic()
    bench.beat("a", -1)
    assert bench.kind is ConsumerGroup
    assert list(bench.consumers.members) == [member_id]


def test_an_upgrade_that_cannot_be_written_is_none() -> None:
    bench = MixedBench()
    classic_id = bench.form_classic()
    _, waiting = bench.new_classic()
    bench.journal.error = ErrorCode.NOT_COORDINATOR
    assert bench.join_consumer("a").error_code == ErrorCode.NOT_COORDINATOR
    bench.journal.error = ErrorCode.NONE
    assert bench.kind is ClassicGroup
    assert waiting.response is None
    assert bench.heartbeat(classic_id, 1) is ErrorCode.REBALANCE_IN_PROGRESS


def test_a_downgrade_that_is_too_large_to_write_leaves_a_consumer_group() -> None:
    """One record of a classic group holds all its members, so a downgrade fails if they do not fit."""
    bench = MixedBench()
    bench.join_consumer("a")
    members = [bench.new_classic()[0] for _ in range(3)]
    bench.journal.largest_bytes = 200
    assert bench.beat("a", -1).error_code == ErrorCode.NONE
    assert list(bench.consumers.members) == members
    assert describe(bench.replayed().groups[GROUP]) == describe(bench.consumers)
    bench.journal.largest_bytes = 1 << 20
    bench.leave((members.pop(), None))
    assert bench.kind is ClassicGroup, "the next who goes tries again"


# Members that lie


GOOD = subscription(["topic"])
LIES = {"range": GOOD, "roundrobin": b""}


def test_a_protocol_that_cannot_be_read_keeps_its_member_out() -> None:
    """Even if it is not the first: it would be the one that a downgrade chooses, and then fails over."""
    bench = MixedBench()
    bench.join_consumer("a")
    assert bench.join("", version=3, protocols=LIES).error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert list(bench.consumers.members) == ["a"]


def test_a_group_with_a_protocol_that_cannot_be_read_is_not_upgraded() -> None:
    bench = MixedBench()
    bench.join("", version=3, protocols=LIES)
    bench.advance(0)
    response = bench.join_consumer("a")
    assert response.error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert "malformed" in (response.error_message or "")
    assert bench.kind is ClassicGroup


def test_protocols_that_no_member_supports_are_removed() -> None:
    bench = MixedBench()
    bench.join_consumer("a")
    for number in range(5):
        answer = bench.join("", version=3, protocols={**bench.protocols(), f"own-{number}": GOOD})
        bench.leave((joined(answer).member_id, None))
    assert not bench.consumers._classic_protocols
