"""Committed offsets: who may commit, what is kept, what is forgotten and when."""

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.coordinator.groups.group import Committer
from odradek.coordinator.groups.group_records import OffsetKey, decode_key
from odradek.coordinator.groups.group_settings import MINUTE_MS
from odradek.coordinator.groups.offset_operations import (
    NewOffset,
    commit_in_transaction,
    delete_group,
    delete_offsets,
    expire_offsets,
    forget_pending_offsets,
    forget_topics,
)
from odradek.coordinator.runtime.record_batches import BatchProducer
from odradek.coordinator.runtime.shard_log import TransactionalWrite
from odradek.metadata.entities import TopicImage
from odradek.protocol.errors import ErrorCode
from tests.coordinator.groups.shard_bench import GROUP, SESSION_MS, ShardBench, session_timer

TOPIC_ID = UUID(int=7)
RETENTION_MS = 7 * 24 * 60 * MINUTE_MS
NO_MEMBER = ("", None, -1)


def commit(
    bench: ShardBench,
    committer: tuple[str, str | None, int] = NO_MEMBER,
    *,
    topic: str = "topic",
    partition: int = 0,
    offset: int = 5,
    metadata: str | None = "",
    version: int = 9,
    retention_ms: int = -1,
    topic_id: UUID = TOPIC_ID,
) -> ErrorCode:
    who = Committer(GROUP, *committer, version)
    (error,) = bench.commit(who, [NewOffset(topic, topic_id, partition, offset, 3, metadata)], retention_ms)
    return error


def offset_of(bench: ShardBench, topic: str = "topic", partition: int = 0) -> int | None:
    committed = bench.shard.offsets.get(GROUP, topic, partition)
    return None if committed is None else committed.offset


def test_a_commit_without_a_group_makes_one_without_members() -> None:
    bench = ShardBench()
    assert commit(bench, offset=42, metadata="note") is ErrorCode.NONE
    committed = bench.shard.offsets.get(GROUP, "topic", 0)
    assert committed is not None
    assert (committed.offset, committed.leader_epoch, committed.metadata) == (42, 3, "note")
    assert committed.commit_timestamp_ms == 1_000_000
    assert bench.group.is_empty
    assert bench.group.protocol_type is None


@pytest.mark.parametrize(("version", "error"), [(8, ErrorCode.ILLEGAL_GENERATION), (9, ErrorCode.GROUP_ID_NOT_FOUND)])
def test_a_member_of_an_unknown_group_cannot_commit(version: int, error: ErrorCode) -> None:
    bench = ShardBench()
    assert commit(bench, ("m", None, 1), version=version) is error
    assert not bench.journal.records


def test_members_commit_in_their_generation() -> None:
    bench = ShardBench()
    member, _ = bench.form_group()
    assert commit(bench, (member, None, 1)) is ErrorCode.NONE


@pytest.mark.parametrize(
    ("committer", "error"),
    [
        (("stranger", None, 1), ErrorCode.UNKNOWN_MEMBER_ID),
        (("member-1", None, 0), ErrorCode.ILLEGAL_GENERATION),
        (("member-1", None, 2), ErrorCode.ILLEGAL_GENERATION),
        (("member-1", None, -1), ErrorCode.ILLEGAL_GENERATION),
        (("member-1", "one", 1), ErrorCode.UNKNOWN_MEMBER_ID),
        (NO_MEMBER, ErrorCode.UNKNOWN_MEMBER_ID),
    ],
)
def test_a_commit_that_does_not_fit_changes_nothing(committer: tuple[str, str | None, int], error: ErrorCode) -> None:
    bench = ShardBench()
    assert bench.form_group()[0] == "member-1"
    assert commit(bench, committer) is error
    assert offset_of(bench) is None


def test_members_commit_until_the_next_generation_begins() -> None:
    bench = ShardBench()
    leader, follower = bench.form_group()
    bench.join(leader)
    assert commit(bench, (follower, None, 1)) is ErrorCode.NONE
    bench.join(follower)
    assert bench.group.state_name == "CompletingRebalance"
    assert commit(bench, (follower, None, 1)) is ErrorCode.ILLEGAL_GENERATION
    assert commit(bench, (follower, None, 2)) is ErrorCode.REBALANCE_IN_PROGRESS


def test_members_commit_in_transactions_while_a_rebalance_completes() -> None:
    """Kafka does not enforce the state of the group for them, and REBALANCE_IN_PROGRESS ends Java's producers."""
    bench = ShardBench()
    leader, follower = bench.form_group()
    bench.join(leader)
    bench.join(follower)
    assert bench.group.state_name == "CompletingRebalance"
    for generation, error in ((1, ErrorCode.ILLEGAL_GENERATION), (2, ErrorCode.NONE)):
        committer = Committer(GROUP, follower, None, generation, 3, is_transactional=True)
        assert bench.group.check_commit(committer) is error


def test_a_commit_is_a_sign_of_life() -> None:
    bench = ShardBench()
    member, _ = bench.form_group()
    bench.advance(SESSION_MS - 1)
    commit(bench, (member, None, 1))
    assert bench.timers.deadlines[session_timer(member)] == bench.timers.now_ms + SESSION_MS


@pytest.mark.parametrize("is_transactional", [False, True])
def test_keys_that_repeat_a_long_group_id_thousands_of_times_are_refused(is_transactional: bool) -> None:
    bench = ShardBench()
    committer = Committer("g" * 32_767, *NO_MEMBER, 9)
    offsets = [NewOffset("topic", TOPIC_ID, index, 1, -1, None) for index in range(600)]
    if is_transactional:
        transaction = TransactionalWrite(BatchProducer(1, 0))
        errors = commit_in_transaction(bench.shard, committer, offsets, transaction)
    else:
        errors = bench.commit(committer, offsets)
    assert errors == [ErrorCode.INVALID_COMMIT_OFFSET_SIZE] * 600
    assert committer.group_id not in bench.shard.groups


def test_a_note_that_is_too_long_is_refused_and_the_others_are_kept() -> None:
    bench = ShardBench(offset_metadata_max_length=4)
    offsets = [
        NewOffset("topic", TOPIC_ID, 0, 1, -1, "12345"),
        NewOffset("topic", TOPIC_ID, 1, 2, -1, "😀😀"),
        NewOffset("topic", TOPIC_ID, 2, 3, -1, None),
    ]
    errors = bench.commit(Committer(GROUP, *NO_MEMBER, 9), offsets)
    assert errors == [ErrorCode.OFFSET_METADATA_TOO_LARGE, ErrorCode.NONE, ErrorCode.NONE]
    assert [offset_of(bench, partition=index) for index in range(3)] == [None, 2, 3]


def test_what_could_not_be_written_is_not_committed() -> None:
    bench = ShardBench()
    commit(bench, offset=1)
    bench.journal.error = ErrorCode.NOT_COORDINATOR
    assert commit(bench, offset=2) is ErrorCode.NOT_COORDINATOR
    assert offset_of(bench) == 1


def test_when_many_offsets_are_written_half_way_the_log_and_the_shard_agree() -> None:
    bench = ShardBench()
    offsets = [NewOffset("topic", TOPIC_ID, index, index, -1, None) for index in range(10)]
    bench.journal.batch_limit_bytes = 300  # three offsets at a time
    bench.journal.error, bench.journal.successes_left = ErrorCode.NOT_COORDINATOR, 2
    assert set(bench.commit(Committer(GROUP, *NO_MEMBER, 9), offsets)) == {ErrorCode.NOT_COORDINATOR}
    committed = set(bench.shard.offsets.partitions(GROUP))
    assert 0 < len(committed) < 10
    assert set(bench.replayed().offsets.partitions(GROUP)) == committed


class TestDeletion:
    def test_offsets_of_topics_without_a_subscriber_are_deleted(self) -> None:
        bench = ShardBench()
        member, _ = bench.form_group(topics=("topic",))
        commit(bench, (member, None, 1), topic="topic")
        commit(bench, (member, None, 1), topic="other")
        assert delete_offsets(bench.shard, GROUP, [("topic", 0), ("other", 0), ("other", 9)]) == [
            ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC,
            ErrorCode.NONE,
            ErrorCode.NONE,
        ]
        assert (offset_of(bench, "topic"), offset_of(bench, "other")) == (5, None)

    def test_a_group_of_another_kind_must_be_empty(self) -> None:
        bench = ShardBench()
        bench.form_group(protocol_type="connect")
        assert delete_offsets(bench.shard, GROUP, [("topic", 0)]) is ErrorCode.NON_EMPTY_GROUP

    def test_an_unknown_group_is_not_found(self) -> None:
        bench = ShardBench()
        assert delete_offsets(bench.shard, GROUP, [("topic", 0)]) is ErrorCode.GROUP_ID_NOT_FOUND
        assert delete_group(bench.shard, GROUP) is ErrorCode.GROUP_ID_NOT_FOUND

    def test_a_group_with_members_cannot_be_deleted(self) -> None:
        bench = ShardBench()
        bench.form_group()
        assert delete_group(bench.shard, GROUP) is ErrorCode.NON_EMPTY_GROUP
        assert bench.group.state_name == "Stable"

    def test_a_deleted_group_leaves_nothing_behind(self) -> None:
        bench = ShardBench()
        commit(bench)
        commit(bench, partition=1)
        assert delete_group(bench.shard, GROUP) is ErrorCode.NONE
        for shard in (bench.shard, bench.replayed()):
            assert not shard.groups
            assert not len(shard.offsets)

    def test_a_deleted_topic_takes_its_offsets_along(self) -> None:
        bench = ShardBench()
        commit(bench, partition=0)
        commit(bench, partition=1, topic_id=UUID(int=0))
        commit(bench, partition=2, topic_id=UUID(int=8))
        commit(bench, topic="other")
        assert forget_topics(bench.shard, GROUP, [TopicImage("topic", TOPIC_ID, (), False)]) is ErrorCode.NONE
        assert set(bench.shard.offsets.partitions(GROUP)) == {("topic", 2), ("other", 0)}


class TestDeletionDuringTransactions:
    """What is deleted does not return when a transaction that was open then is committed."""

    def test_deleted_offsets(self) -> None:
        bench = ShardBench()
        commit(bench, partition=0)
        commit_in_open_transaction(bench, ("topic", 0), ("topic", 1), ("topic", 2))
        assert delete_offsets(bench.shard, GROUP, [("topic", 0), ("topic", 1)]) == [ErrorCode.NONE] * 2
        assert offset_of(bench) is None
        assert pending_offsets(bench) == {("topic", 2)}

    def test_a_deleted_group(self) -> None:
        bench = ShardBench()
        commit(bench, partition=0)
        commit_in_open_transaction(bench, ("topic", 0), ("topic", 1))
        commit_in_open_transaction(bench, ("topic", 0), group_id=GROUP + "s")
        assert delete_group(bench.shard, GROUP) is ErrorCode.NONE
        assert set(bench.shard.groups) == {GROUP + "s"}
        assert pending_offsets(bench) == set()
        assert pending_offsets(bench, GROUP + "s") == {("topic", 0)}

    def test_a_deleted_group_decodes_no_offsets_of_others(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Deleting many groups beside a large transaction would keep the event loop busy for seconds."""
        bench = ShardBench()
        commit_in_open_transaction(bench, ("topic", 0), ("topic", 1))
        commit_in_open_transaction(bench, *(("topic", index) for index in range(100)), group_id=GROUP + "s")
        decoded = []

        def remember(key: bytes) -> object:
            decoded.append(key)
            return decode_key(key)

        with monkeypatch.context() as patch:
            patch.setattr(bench.shard, "write_each", lambda records: ErrorCode.NONE)  # replaying decodes keys too
            patch.setattr("odradek.coordinator.groups.group_shard.decode_key", remember)
            assert delete_group(bench.shard, GROUP) is ErrorCode.NONE
        assert len(decoded) == 2

    def test_the_offsets_of_a_deleted_topic(self) -> None:
        bench = ShardBench()
        commit(bench, partition=0)
        commit_in_open_transaction(bench, ("topic", 0), ("topic", 1), ("other", 0))
        forget(bench, [TopicImage("topic", TOPIC_ID, (), False)])
        assert offset_of(bench) is None
        assert pending_offsets(bench) == {("other", 0)}

    def test_the_offsets_of_a_topic_that_was_created_again_stay(self) -> None:
        bench = ShardBench()
        commit(bench, partition=0)
        commit_in_open_transaction(bench, ("topic", 0), ("topic", 1), topic_id=UUID(int=8))
        forget(bench, [TopicImage("topic", TOPIC_ID, (), False)])
        assert pending_offsets(bench) == {("topic", 0), ("topic", 1)}


def commit_in_open_transaction(
    bench: ShardBench, *partitions: tuple[str, int], topic_id: UUID = TOPIC_ID, group_id: str = GROUP
) -> None:
    offsets = [NewOffset(topic, topic_id, partition, 9, -1, "") for topic, partition in partitions]
    committer = Committer(group_id, *NO_MEMBER, 3, is_transactional=True)
    errors = commit_in_transaction(bench.shard, committer, offsets, TransactionalWrite(BatchProducer(1, 0)))
    assert set(errors) == {ErrorCode.NONE}


def forget(bench: ShardBench, topics: list[TopicImage]) -> None:
    assert forget_topics(bench.shard, GROUP, topics) is ErrorCode.NONE
    assert forget_pending_offsets(bench.shard, topics) is ErrorCode.NONE


def pending_offsets(bench: ShardBench, group_id: str = GROUP) -> set[tuple[str, int]]:
    """The partitions whose offsets count for this group when the open transactions are committed."""
    pending = bench.runtime_shard.pending_transactions
    keys = [decode_key(key) for key in pending.all_keys()]
    return {(key.topic, key.partition) for key in keys if isinstance(key, OffsetKey) and key.group == group_id}


class TestExpiry:
    def test_a_simple_groups_offset_expires_after_its_commit(self) -> None:
        bench = ShardBench()
        commit(bench, partition=0)
        bench.advance(1000)
        commit(bench, partition=1)
        bench.advance(RETENTION_MS - 1000)
        expire_offsets(bench.shard, GROUP)
        assert set(bench.shard.offsets.partitions(GROUP)) == {("topic", 1)}
        bench.advance(1000)
        expire_offsets(bench.shard, GROUP)
        assert GROUP not in bench.shard.groups

    def test_an_empty_groups_offsets_expire_after_it_became_empty(self) -> None:
        bench = ShardBench()
        (member,) = bench.form_group(1, session_timeout_ms=RETENTION_MS * 3)
        commit(bench, (member, None, 1))
        bench.advance(RETENTION_MS * 2)
        expire_offsets(bench.shard, GROUP)
        assert offset_of(bench) == 5
        bench.leave((member, None))
        bench.advance(RETENTION_MS - 1)
        expire_offsets(bench.shard, GROUP)
        assert offset_of(bench) == 5
        bench.advance(1)
        expire_offsets(bench.shard, GROUP)
        assert GROUP not in bench.shard.groups
        assert not bench.replayed().groups

    def test_topics_that_the_members_left_behind_expire(self) -> None:
        bench = ShardBench()
        (member,) = bench.form_group(1, topics=("topic",), session_timeout_ms=RETENTION_MS * 3)
        commit(bench, (member, None, 1), topic="topic")
        commit(bench, (member, None, 1), topic="other")
        bench.advance(RETENTION_MS)
        expire_offsets(bench.shard, GROUP)
        assert set(bench.shard.offsets.partitions(GROUP)) == {("topic", 0)}
        assert bench.group.state_name == "Stable"

    def test_nothing_expires_while_the_subscriptions_cannot_be_read(self) -> None:
        bench = ShardBench()
        (member,) = bench.form_group(1, protocols={"range": b"?"}, session_timeout_ms=RETENTION_MS * 3)
        commit(bench, (member, None, 1))
        bench.advance(RETENTION_MS)
        expire_offsets(bench.shard, GROUP)
        assert offset_of(bench) == 5

    def test_old_clients_choose_a_retention_of_their_own(self) -> None:
        bench = ShardBench()
        commit(bench, version=4, retention_ms=1000)
        bench.advance(999)
        expire_offsets(bench.shard, GROUP)
        assert offset_of(bench) == 5
        bench.advance(1)
        expire_offsets(bench.shard, GROUP)
        assert offset_of(bench) is None


@given(
    st.lists(
        st.builds(
            NewOffset,
            st.sampled_from(["topic", "other", "ünïcode", "t" * 249]),
            st.sampled_from([UUID(int=0), TOPIC_ID, UUID(int=2**128 - 1)]),
            st.integers(0, 2**31 - 1),
            st.integers(-1, 2**63 - 1),
            st.integers(-1, 2**31 - 1),
            st.none() | st.text(max_size=20),
        ),
        min_size=1,
        max_size=10,
    ),
    st.sampled_from([-1, 0, 1000]),
    st.sampled_from(["", GROUP, "g" * 300]),
)
def test_a_commit_changes_the_shard_as_replaying_its_records_does(
    offsets: list[NewOffset], retention_ms: int, group_id: str
) -> None:
    """Commits are not decoded again after they are appended."""
    bench = ShardBench()
    bench.commit(Committer(group_id, "", None, -1, 9), offsets, retention_ms)
    again = bench.replayed()
    assert again.offsets._by_group == bench.shard.offsets._by_group
    assert list(again.groups) == list(bench.shard.groups)
    for new in offsets:
        committed = bench.shard.offsets.get(group_id, new.topic, new.partition)
        assert committed == again.offsets.get(group_id, new.topic, new.partition)
    last = offsets[-1]
    committed = bench.shard.offsets.get(group_id, last.topic, last.partition)
    expire_ms = -1 if retention_ms == -1 else bench.clock.now_ms() + retention_ms
    leader_epoch, topic_id = (last.leader_epoch, last.topic_id) if expire_ms == -1 else (-1, UUID(int=0))
    now_ms = bench.clock.now_ms()
    assert committed == (last.offset, leader_epoch, last.metadata or "", now_ms, expire_ms, topic_id)
