"""ConsumerGroupHeartbeat: joining, following the target step by step, leaving, and being left out."""

from typing import Any

import pytest

from odradek.configuration.config_types import ConfigResourceType
from odradek.coordinator.groups.consumer.draft import Draft
from odradek.coordinator.groups.consumer.patterns import match_patterns
from odradek.coordinator.groups.consumer.records import regular_expression_record
from odradek.coordinator.groups.decision import PatternMatch, TimerKey, TimerKind
from odradek.coordinator.groups.group import Committer
from odradek.coordinator.groups.offset_operations import NewOffset, delete_group, delete_offsets
from odradek.metadata.changes import ConfigsChanged
from odradek.protocol.errors import ErrorCode
from tests.coordinator.groups.consumer.consumer_bench import (
    CONSUMER_REBALANCE_MS,
    CONSUMER_SESSION_MS,
    ConsumerBench,
    describe,
)
from tests.coordinator.groups.shard_bench import GROUP

ALL = {("topic", index) for index in range(4)}


@pytest.fixture
def bench() -> ConsumerBench:
    bench = ConsumerBench()
    bench.create_topic("topic", 4)
    return bench


def two_members(bench: ConsumerBench) -> tuple[set[tuple[str, int]], set[tuple[str, int]]]:
    """`a` had everything and has given half of it to `b`; what each has now."""
    bench.join_consumer("a")
    bench.join_consumer("b")
    kept = bench.assigned(bench.beat("a", 2, owned=ALL))
    assert kept is not None
    bench.beat("a", 2, owned=kept)
    got = bench.assigned(bench.beat("b", 3))
    assert got is not None
    return kept, got


def error(response: Any) -> ErrorCode:
    return ErrorCode(response.error_code)


def test_the_first_member_gets_everything_at_once(bench: ConsumerBench) -> None:
    response = bench.join_consumer("a")
    assert bench.assigned(response) == ALL
    assert (response.member_id, response.member_epoch, response.heartbeat_interval_ms) == ("a", 2, 5000)
    assert bench.consumers.state_name == "Stable"


def test_a_subscription_far_over_the_limit_is_refused_before_a_record_is_built(
    bench: ConsumerBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Draft, "put_metadata", lambda *_: pytest.fail("a record was built"))
    names = [f"{number}" + 32_000 * "n" for number in range(200)]
    assert error(bench.join_consumer("a", names)) is ErrorCode.UNKNOWN_SERVER_ERROR
    assert GROUP not in bench.shard.groups


def test_an_assignment_is_sent_once(bench: ConsumerBench) -> None:
    epoch = bench.join_consumer("a").member_epoch
    assert bench.beat("a", epoch).assignment is None


def test_what_is_given_back_goes_to_the_other_and_not_before(bench: ConsumerBench) -> None:
    bench.join_consumer("a")
    joined = bench.join_consumer("b")
    assert (bench.assigned(joined), joined.member_epoch) == (set(), 3), "it waits"
    asked = bench.beat("a", 2, owned=ALL)
    kept = bench.assigned(asked)
    assert kept is not None
    assert (len(kept), asked.member_epoch) == (2, 2), "it stays in its epoch until it has given back"
    assert bench.beat("b", 3).assignment is None
    assert bench.consumers.state_name == "Reconciling"
    assert bench.beat("a", 2, owned=kept).member_epoch == 3
    assert bench.assigned(bench.beat("b", 3)) == ALL - kept
    assert bench.consumers.state_name == "Stable"


def test_partitions_of_a_member_that_leaves_are_free_at_once(bench: ConsumerBench) -> None:
    kept, got = two_members(bench)
    assert bench.beat("b", -1).member_epoch == -1
    assert bench.assigned(bench.beat("a", 3, owned=kept)) == kept | got


def test_a_silent_member_is_left_out(bench: ConsumerBench) -> None:
    kept, _ = two_members(bench)
    bench.advance(CONSUMER_SESSION_MS - 1)
    bench.beat("a", 3)
    bench.advance(1)
    assert list(bench.consumers.members) == ["a"]
    assert error(bench.beat("b", 3)) is ErrorCode.UNKNOWN_MEMBER_ID
    assert bench.assigned(bench.beat("a", 3, owned=kept)) == ALL


def test_a_group_chooses_its_own_session_timeout_and_interval() -> None:
    bench = ConsumerBench(limits={"session.timeout.ms": (1000, 60_000), "heartbeat.interval.ms": (100, 15_000)})
    values = {"consumer.session.timeout.ms": "50000", "consumer.heartbeat.interval.ms": "20000"}
    bench.image = bench.image.apply(ConfigsChanged(ConfigResourceType.GROUP, GROUP, values))
    assert bench.join_consumer("a").heartbeat_interval_ms == 15_000, "the broker's limit holds"
    assert bench.timers.deadlines[TimerKey(TimerKind.SESSION, GROUP, "a")] == bench.timers.now_ms + 50_000


def test_a_member_that_does_not_give_back_is_left_out(bench: ConsumerBench) -> None:
    bench.join_consumer("a")
    bench.join_consumer("b")
    bench.beat("a", 2, owned=ALL)
    for _ in range(CONSUMER_REBALANCE_MS // 30_000):
        bench.beat("a", 2)
        bench.beat("b", 3)
        bench.advance(30_000)
    assert list(bench.consumers.members) == ["b"]
    assert bench.assigned(bench.beat("b", 3)) == ALL


@pytest.mark.parametrize("epoch", [1, 3])
def test_a_wrong_epoch_is_fenced_and_changes_nothing(bench: ConsumerBench, epoch: int) -> None:
    bench.join_consumer("a")
    before = describe(bench.consumers)
    assert error(bench.beat("a", epoch, owned=set(), subscribed_topic_names=[])) is ErrorCode.FENCED_MEMBER_EPOCH
    assert describe(bench.consumers) == before


def test_the_epoch_before_is_good_when_nothing_else_is_owned(bench: ConsumerBench) -> None:
    bench.join_consumer("a")
    bench.add_partition("topic")
    assert bench.beat("a", 2, owned=ALL).member_epoch == 3
    assert bench.beat("a", 2, owned=ALL).member_epoch == 3, "the answer was lost"
    assert error(bench.beat("a", 2, owned={("topic", 9)})) is ErrorCode.FENCED_MEMBER_EPOCH
    assert error(bench.beat("a", 2)) is ErrorCode.FENCED_MEMBER_EPOCH


def test_a_fenced_member_begins_again_with_zero(bench: ConsumerBench) -> None:
    bench.join_consumer("a")
    response = bench.join_consumer("a")
    assert (bench.assigned(response), response.member_epoch) == (ALL, 2)


def test_unknown_members_and_groups(bench: ConsumerBench) -> None:
    assert error(bench.beat("a", 1)) is ErrorCode.GROUP_ID_NOT_FOUND
    assert error(bench.beat("a", -1)) is ErrorCode.GROUP_ID_NOT_FOUND
    bench.join_consumer("a")
    assert error(bench.beat("b", 1)) is ErrorCode.UNKNOWN_MEMBER_ID
    assert error(bench.beat("b", -1)) is ErrorCode.UNKNOWN_MEMBER_ID
    assert error(bench.beat("b", 1, instance_id="i")) is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_full_group_refuses_new_members() -> None:
    bench = ConsumerBench(consumer_max_size=1)
    bench.create_topic("topic", 4)
    bench.join_consumer("a")
    assert error(bench.join_consumer("b")) is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert error(bench.join_consumer("a")) is ErrorCode.NONE


# Static members


def test_a_static_member_comes_back_to_what_it_had(bench: ConsumerBench) -> None:
    bench.join_consumer("a", instance_id="i")
    bench.join_consumer("b")
    before = bench.consumers.epoch
    assert bench.beat("a", -2, instance_id="i").member_epoch == -2
    back = bench.join_consumer("c", instance_id="i")
    assert bench.consumers.epoch == before
    assert len(bench.assigned(back) or ()) == 2, "its share; it says that it has given the rest back"
    assert set(bench.consumers.members) == {"b", "c"}
    assert error(bench.beat("a", 2, instance_id="i")) is ErrorCode.FENCED_INSTANCE_ID
    assert error(bench.beat("a", -1, instance_id="i")) is ErrorCode.FENCED_INSTANCE_ID


def test_a_place_that_is_taken_cannot_be_taken(bench: ConsumerBench) -> None:
    bench.join_consumer("a", instance_id="i")
    assert error(bench.join_consumer("b", instance_id="i")) is ErrorCode.UNRELEASED_INSTANCE_ID
    assert list(bench.consumers.members) == ["a"]


def test_a_member_may_become_static_and_change_its_name(bench: ConsumerBench) -> None:
    bench.join_consumer("a")
    assert bench.assigned(bench.join_consumer("a", instance_id="one")) == ALL
    assert bench.consumers.members["a"].previous_epoch == 0, "it is not a new member"
    bench.join_consumer("a", instance_id="two")
    assert bench.consumers.static_members == {"two": "a"}
    assert bench.beat("a", 2, instance_id="one").error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert bench.beat("a", 2, instance_id="two").error_code == ErrorCode.NONE


def test_a_static_member_that_stays_away_is_left_out(bench: ConsumerBench) -> None:
    bench.join_consumer("a", instance_id="i")
    bench.beat("a", -2, instance_id="i")
    bench.advance(CONSUMER_SESSION_MS)
    assert bench.consumers.is_empty
    assert bench.consumers.static_members == {}


# Subscriptions


def test_topics_that_come_grow_and_go_are_noticed_by_the_next_heartbeat(bench: ConsumerBench) -> None:
    bench.join_consumer("a", ["topic", "later"])
    bench.create_topic("unconcerned", 1)
    assert bench.beat("a", 2).member_epoch == 2
    bench.create_topic("later", 1)
    response = bench.beat("a", 2, owned=ALL)
    assert (bench.assigned(response), response.member_epoch) == (ALL | {("later", 0)}, 3)
    bench.add_partition("later")
    assert bench.assigned(bench.beat("a", 3)) == ALL | {("later", 0), ("later", 1)}
    bench.delete_topic("later")
    assert bench.assigned(bench.beat("a", 4)) == ALL


def test_what_a_member_unsubscribes_from_is_taken_away(bench: ConsumerBench) -> None:
    bench.create_topic("other", 1)
    bench.join_consumer("a", ["topic", "other"])
    response = bench.beat("a", 2, subscribed_topic_names=["other"])
    assert (bench.assigned(response), response.member_epoch) == ({("other", 0)}, 2)
    assert bench.beat("a", 2, owned={("other", 0)}).member_epoch == 3


def test_assignments_wait_for_their_interval_and_what_was_unsubscribed_does_not() -> None:
    bench = ConsumerBench(assignment_interval_ms=1000)
    bench.create_topic("topic", 4)
    bench.create_topic("other", 1)
    bench.join_consumer("a", ["topic", "other"])
    response = bench.beat("a", 2, subscribed_topic_names=["topic"], owned=ALL | {("other", 0)})
    assert (bench.assigned(response), response.member_epoch) == (ALL, 2)
    assert bench.consumers.state_name == "Assigning"
    bench.advance(1000)
    assert bench.beat("a", 2, owned=ALL).member_epoch == 3


def test_a_clock_that_was_set_back_does_not_hold_up_assignments() -> None:
    bench = ConsumerBench(assignment_interval_ms=1000)
    bench.create_topic("topic", 4)
    bench.join_consumer("a")
    bench.timers.now_ms -= 3_600_000  # the coordinator's clock, or another broker coordinates
    assert bench.join_consumer("b").member_epoch == 3
    assert bench.consumers.target_epoch == 3
    bench.advance(999)
    bench.join_consumer("c")
    assert bench.consumers.target_epoch == 3, "the interval counts from the last assignment"


def test_a_clock_that_was_set_back_does_not_hold_up_patterns(bench: ConsumerBench) -> None:
    bench.join_consumer("a", None, subscribed_topic_regex="topic.*")
    bench.create_topic("topical", 1)
    bench.timers.now_ms -= 3_600_000
    bench.beat("a", 2)
    assert len(bench.matches) == 1
    bench.match()
    assert bench.assigned(bench.beat("a", 2)) == ALL | {("topical", 0)}
    bench.create_topic("topics", 1)
    bench.beat("a", 3)
    assert not bench.matches, "once"


def test_a_pattern_is_matched_when_its_first_subscriber_joins(bench: ConsumerBench) -> None:
    bench.create_topic("topical", 1)
    bench.create_topic("other", 1)
    response = bench.join_consumer("a", None, subscribed_topic_regex="topic.*")
    assert (bench.assigned(response), response.member_epoch) == (ALL | {("topical", 0)}, 2)
    assert bench.consumers.is_subscribed_to("topical")
    assert not bench.consumers.is_subscribed_to("other")


def test_a_pattern_finds_new_topics_but_not_for_each_of_them(bench: ConsumerBench) -> None:
    bench.join_consumer("a", None, subscribed_topic_regex="topic.*")
    bench.create_topic("topical", 1)
    bench.beat("a", 2)
    assert not bench.matches, "too soon"
    bench.advance(10_001)
    bench.beat("a", 2)
    bench.beat("a", 2)
    assert len(bench.matches) == 1, "once"
    bench.match()
    assert bench.assigned(bench.beat("a", 2)) == ALL | {("topical", 0)}
    bench.advance(10_001)
    bench.delete_topic("topical")
    bench.beat("a", 3)
    assert not bench.matches


def test_a_match_that_took_long_does_not_undo_a_newer_one(bench: ConsumerBench) -> None:
    slow = match_patterns(["topic.*"], bench.image)
    bench.create_topic("topical", 1)
    bench.join_consumer("a", None, subscribed_topic_regex="topic.*")
    bench.shard.patterns_matched(PatternMatch(GROUP, frozenset(["topic.*"]), lambda _: True), slow)
    assert bench.consumers.is_subscribed_to("topical")
    assert bench.consumers.matched_topics is bench.image.topics


def test_a_match_in_another_clusters_metadata_does_not_stay_for_ever(bench: ConsumerBench) -> None:
    bench.join_consumer("a", None, subscribed_topic_regex="topic.*")
    record = regular_expression_record(GROUP, "topic.*", ["topic"], 10**9, 0)
    assert bench.shard.write([record]) is ErrorCode.NONE
    bench.create_topic("topical", 1)
    bench.advance(10_001)
    bench.beat("a", 2)
    bench.match()
    assert bench.consumers.is_subscribed_to("topical")


def test_a_pattern_does_not_reveal_topics_that_the_client_may_not_describe(bench: ConsumerBench) -> None:
    bench.create_topic("topical", 1)
    response = bench.join_consumer(
        "a", None, subscribed_topic_regex="topic.*", may_describe=lambda topic: topic == "topical"
    )
    assert bench.assigned(response) == {("topical", 0)}


def test_a_pattern_goes_with_its_last_subscriber(bench: ConsumerBench) -> None:
    for member_id in ("a", "b", "c"):
        bench.join_consumer(member_id, None, subscribed_topic_regex="topic.*")
    bench.beat("a", -1)
    bench.beat("b", bench.consumers.members["b"].epoch, subscribed_topic_regex="other.*")
    assert set(bench.consumers.patterns) == {"topic.*", "other.*"}
    bench.beat("c", -1)
    assert set(bench.consumers.patterns) == {"other.*"}
    bench.beat("b", bench.consumers.members["b"].epoch, subscribed_topic_regex="")
    assert bench.consumers.patterns == {}


def test_most_votes_choose_the_assignor(bench: ConsumerBench) -> None:
    bench.join_consumer("a", server_assignor="range")
    bench.join_consumer("b", server_assignor="range")
    bench.join_consumer("c", server_assignor="uniform")
    assert bench.consumers.preferred_assignor("uniform") == "range"
    assert {partition for _, partition in bench.assigned(bench.beat("a", 2, owned=ALL)) or ()} == {0, 1}


def test_an_assignor_that_only_another_broker_has_gives_way_to_the_default(bench: ConsumerBench) -> None:
    response = bench.join_consumer("a", server_assignor="our own")  # the handler refuses it, a log may contain it
    assert bench.assigned(response) == ALL


# Offsets, deletion, the log


def commit(bench: ConsumerBench, member_id: str, epoch: int, partition: int, version: int = 10) -> ErrorCode:
    topic_id = bench.image.topics["topic"].topic_id
    offset = NewOffset("topic", topic_id, partition, 5, -1, "")
    (answer,) = bench.commit(Committer(GROUP, member_id, None, epoch, version), [offset])
    return answer


def test_commits_by_member_and_epoch(bench: ConsumerBench) -> None:
    kept, got = two_members(bench)
    (_, mine), (_, others) = next(iter(kept)), next(iter(got))
    assert commit(bench, "a", 3, mine) is ErrorCode.NONE
    assert commit(bench, "a", 2, mine) is ErrorCode.NONE, "it has been its own since then"
    assert commit(bench, "a", 2, others) is ErrorCode.STALE_MEMBER_EPOCH
    assert commit(bench, "b", 2, others) is ErrorCode.STALE_MEMBER_EPOCH
    assert commit(bench, "a", 4, mine) is ErrorCode.STALE_MEMBER_EPOCH
    assert commit(bench, "c", 3, mine) is ErrorCode.UNKNOWN_MEMBER_ID
    assert commit(bench, "", -1, mine) is ErrorCode.UNKNOWN_MEMBER_ID
    assert commit(bench, "a", 3, mine, version=8) is ErrorCode.UNSUPPORTED_VERSION
    assert bench.consumers.check_fetch("a", 3) is ErrorCode.NONE
    assert bench.consumers.check_fetch("a", 2) is ErrorCode.STALE_MEMBER_EPOCH
    assert bench.consumers.check_fetch("c", 3) is ErrorCode.UNKNOWN_MEMBER_ID
    assert bench.consumers.check_fetch(None, -1) is ErrorCode.NONE


def test_offsets_of_subscribed_topics_and_groups_with_members_are_not_deleted(bench: ConsumerBench) -> None:
    bench.join_consumer("a")
    commit(bench, "a", 2, 0)
    assert delete_offsets(bench.shard, GROUP, [("topic", 0)]) == [ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC]
    assert delete_group(bench.shard, GROUP) is ErrorCode.NON_EMPTY_GROUP
    bench.beat("a", -1)
    assert bench.consumers.state_name == "Empty"
    assert delete_group(bench.shard, GROUP) is ErrorCode.NONE
    assert GROUP not in bench.shard.groups
    assert GROUP not in bench.replayed().groups


def test_a_write_that_fails_changes_nothing(bench: ConsumerBench) -> None:
    bench.join_consumer("a")
    before = describe(bench.consumers)
    bench.journal.error = ErrorCode.NOT_COORDINATOR
    assert error(bench.join_consumer("b")) is ErrorCode.NOT_COORDINATOR
    assert error(bench.beat("a", -1)) is ErrorCode.NOT_COORDINATOR
    assert describe(bench.consumers) == before
    bench.advance(CONSUMER_SESSION_MS)
    assert describe(bench.consumers) == before
    bench.journal.error = ErrorCode.NONE
    bench.advance(500)
    assert bench.consumers.is_empty, "a session that ended meanwhile is not forgotten"


def test_members_go_on_after_a_restart(bench: ConsumerBench) -> None:
    kept, got = two_members(bench)
    before = describe(bench.consumers)
    bench.restart()
    assert describe(bench.consumers) == before
    assert error(bench.beat("a", 3, owned=kept)) is ErrorCode.NONE
    bench.advance(CONSUMER_SESSION_MS - 1)
    bench.beat("a", 3)
    bench.advance(1)
    assert bench.assigned(bench.beat("a", 3, owned=kept)) == kept | got


def test_who_must_give_back_must_do_so_after_a_restart_too(bench: ConsumerBench) -> None:
    bench.join_consumer("a")
    bench.join_consumer("b")
    bench.beat("a", 2, owned=ALL)
    bench.restart()
    assert bench.timers.is_running(TimerKey(TimerKind.REVOCATION, GROUP, "a"))
