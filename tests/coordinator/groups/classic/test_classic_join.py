"""Who may come into a classic group, and under which id."""

import pytest

from odradek.coordinator.groups.group_settings import MINUTE_MS
from odradek.protocol.errors import ErrorCode
from tests.coordinator.groups.shard_bench import GROUP, SESSION_MS, ShardBench, joined


def test_a_new_member_is_given_an_id_first() -> None:
    bench = ShardBench()
    answer = bench.join()
    assert answer.error is ErrorCode.MEMBER_ID_REQUIRED
    assert joined(answer).member_id == "member-1"
    assert bench.group.pending_members == {"member-1"}
    assert bench.group.is_empty


def test_before_version_4_it_is_a_member_at_once() -> None:
    bench = ShardBench()
    answer = bench.join(version=3)
    bench.advance(0)
    assert joined(answer).error_code == ErrorCode.NONE
    assert joined(answer).leader == joined(answer).member_id == "member-1"


def test_an_id_that_is_not_used_within_a_session_is_forgotten() -> None:
    bench = ShardBench()
    member_id = joined(bench.join()).member_id
    bench.advance(SESSION_MS)
    assert not bench.group.pending_members
    assert bench.join(member_id).error is ErrorCode.UNKNOWN_MEMBER_ID


def test_ids_that_are_not_used_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("odradek.coordinator.groups.classic.join.MOST_PENDING_MEMBERS", 3)
    bench = ShardBench()
    answers = [bench.join() for _ in range(5)]
    assert [answer.error for answer in answers] == [
        *[ErrorCode.MEMBER_ID_REQUIRED] * 3,
        *[ErrorCode.COORDINATOR_NOT_AVAILABLE] * 2,
    ]
    assert len(bench.group.pending_members) == 3
    bench.join(joined(answers[0]).member_id)
    assert bench.join().error is ErrorCode.MEMBER_ID_REQUIRED, "a client has joined with its id"
    bench.advance(SESSION_MS)
    assert bench.join().error is ErrorCode.MEMBER_ID_REQUIRED, "ids that were not used are forgotten"


def test_a_member_of_an_unknown_group_is_unknown() -> None:
    bench = ShardBench()
    assert bench.join("unknown").error is ErrorCode.UNKNOWN_MEMBER_ID
    assert not bench.shard.groups
    assert not bench.journal.records


def test_the_first_rebalance_waits_for_more_members() -> None:
    bench = ShardBench(initial_rebalance_delay_ms=3000)
    _, first = bench.join_new()
    bench.advance(2999)
    assert first.response is None
    _, second = bench.join_new()
    bench.advance(1)  # a member came: wait once more
    assert first.response is None
    bench.advance(3000)
    assert {joined(first).generation_id, joined(second).generation_id} == {1}


def test_the_first_rebalance_does_not_wait_longer_than_the_rebalance_timeout() -> None:
    bench = ShardBench(initial_rebalance_delay_ms=3000)
    _, first = bench.join_new(rebalance_timeout_ms=5000)
    for _ in range(10):
        bench.advance(1000)
        bench.join_new(rebalance_timeout_ms=5000)
    assert first.response is not None


def test_the_leader_learns_of_all_members_and_the_others_of_none() -> None:
    bench = ShardBench()
    leader_id, leader = bench.join_new()
    follower_id, follower = bench.join_new()
    bench.advance(0)
    assert joined(leader).leader == joined(follower).leader == leader_id
    assert [member.member_id for member in joined(leader).members] == [leader_id, follower_id]
    assert joined(follower).members == []
    assert joined(leader).protocol_type == "consumer"
    assert joined(leader).protocol_name == "range"


def test_the_protocol_with_the_most_votes_among_those_that_all_have_is_chosen() -> None:
    bench = ShardBench()
    subscriptions = [
        {"sticky": b"", "range": b""},
        {"range": b"", "round": b""},
        {"only-mine": b"", "round": b"", "range": b""},
    ]
    answers = [bench.join_new(protocols=protocols)[1] for protocols in subscriptions]
    bench.advance(0)
    assert {joined(answer).protocol_name for answer in answers} == {"range"}


def test_a_member_without_a_common_protocol_is_refused_and_the_group_unharmed() -> None:
    bench = ShardBench()
    bench.form_group()
    assert bench.join(protocols={"other": b""}).error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert bench.join(protocol_type="connect").error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert bench.group.state_name == "Stable"


def test_a_group_does_not_begin_with_a_member_that_speaks_nothing() -> None:
    bench = ShardBench()
    assert bench.join(protocols={}).error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert bench.join(protocol_type="").error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_a_full_group_refuses_a_member() -> None:
    bench = ShardBench(max_size=2)
    bench.form_group(2)
    assert bench.join().error is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert bench.group.state_name == "Stable"


def test_when_the_limit_was_lowered_the_last_to_join_are_left_out() -> None:
    bench = ShardBench()
    first, second, third = bench.form_group(3)
    bench.settings = ShardBench(max_size=2).settings
    bench.restart()
    assert bench.group.state_name == "PreparingRebalance"
    waiting = [bench.join(first), bench.join(second)]
    assert bench.join(third).error is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert {answer.error for answer in waiting} == {ErrorCode.NONE}


def test_a_follower_that_missed_its_answer_gets_it_again() -> None:
    bench = ShardBench()
    _, follower = bench.form_group()
    answer = bench.join(follower)
    assert joined(answer).generation_id == 1
    assert bench.group.state_name == "Stable"


def test_the_leader_rejoins_to_make_a_rebalance() -> None:
    bench = ShardBench()
    leader, follower = bench.form_group()
    assert bench.join(leader).response is None
    assert bench.heartbeat(follower, 1) is ErrorCode.REBALANCE_IN_PROGRESS


def test_changed_metadata_makes_a_rebalance() -> None:
    bench = ShardBench()
    leader, follower = bench.form_group()
    rejoined = bench.join(follower, topics=("topic", "another"))
    assert rejoined.response is None
    bench.join(leader)
    assert joined(rejoined).generation_id == 2
    assert bench.group.subscribed_topics == frozenset({"topic", "another"})


def test_a_join_during_the_assignment_is_answered_from_the_generation() -> None:
    bench = ShardBench()
    leader, _ = bench.join_new()
    bench.advance(0)
    assert bench.group.state_name == "CompletingRebalance"
    again = bench.join(leader)
    assert joined(again).generation_id == 1
    assert len(joined(again).members) == 1


def test_a_member_that_joins_twice_gets_two_answers() -> None:
    bench = ShardBench()
    leader, follower = bench.form_group()
    first = bench.join(leader)
    second = bench.join(leader)
    assert first.error is ErrorCode.REBALANCE_IN_PROGRESS
    bench.join(follower)
    assert second.error is ErrorCode.NONE


def test_a_new_member_is_removed_after_its_join_timeout() -> None:
    bench = ShardBench()
    bench.form_group(1, rebalance_timeout_ms=60 * MINUTE_MS, session_timeout_ms=60 * MINUTE_MS)
    _, waiting = bench.join_new()
    bench.advance(5 * MINUTE_MS)
    assert waiting.error is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_group_that_cannot_be_stored_does_not_exist() -> None:
    bench = ShardBench()
    bench.journal.error = ErrorCode.NOT_COORDINATOR
    assert bench.join().error is ErrorCode.NOT_COORDINATOR
    assert GROUP not in bench.shard.groups


class TestStaticMembers:
    def test_a_static_member_needs_no_second_step(self) -> None:
        bench = ShardBench()
        answer = bench.join(instance_id="one")
        bench.advance(0)
        assert joined(answer).error_code == ErrorCode.NONE
        assert bench.group.static_members == {"one": "member-1"}

    def form(self, bench: ShardBench) -> dict[str, str]:
        answers = {name: bench.join(instance_id=name) for name in ("one", "two")}
        bench.advance(0)
        bench.stabilize({joined(answer).member_id: answer for answer in answers.values()})
        return {name: joined(answer).member_id for name, answer in answers.items()}

    def test_a_static_member_that_returns_keeps_generation_and_assignment(self) -> None:
        bench = ShardBench()
        ids = self.form(bench)
        answer = joined(bench.join(instance_id="two"))
        assert (answer.error_code, answer.generation_id, answer.skip_assignment) == (ErrorCode.NONE, 1, False)
        assert answer.member_id not in ids.values()
        assert bench.group.state_name == "Stable"
        assert bench.sync(answer.member_id, 1).response.assignment == ids["two"].encode()
        assert bench.replayed().groups[GROUP].static_members == bench.group.static_members  # type: ignore[attr-defined]  # a classic group

    def test_the_old_id_is_fenced(self) -> None:
        bench = ShardBench()
        ids = self.form(bench)
        bench.join(instance_id="two")
        assert bench.heartbeat(ids["two"], 1, "two") is ErrorCode.FENCED_INSTANCE_ID
        assert bench.join(ids["two"], instance_id="two").error is ErrorCode.FENCED_INSTANCE_ID
        assert bench.sync(ids["two"], 1, group_instance_id="two").error is ErrorCode.FENCED_INSTANCE_ID
        assert bench.leave((ids["two"], "two")) == [ErrorCode.FENCED_INSTANCE_ID]
        assert bench.heartbeat(ids["two"], 1) is ErrorCode.UNKNOWN_MEMBER_ID

    def test_a_leader_that_returns_must_skip_the_assignment(self) -> None:
        bench = ShardBench()
        self.form(bench)
        answer = joined(bench.join(instance_id="one"))
        assert answer.skip_assignment
        assert answer.leader == answer.member_id
        assert len(answer.members) == 2

    def test_before_version_9_the_answer_to_a_leader_that_returns_names_another_leader(self) -> None:
        bench = ShardBench()
        ids = self.form(bench)
        answer = joined(bench.join(instance_id="one", version=8))
        assert answer.leader == ids["one"]
        assert answer.members == []

    def test_another_protocol_makes_a_rebalance(self) -> None:
        bench = ShardBench()
        both = {"range": b"", "round": b""}
        answers = [bench.join(instance_id=name, protocols=both) for name in ("one", "two")]
        bench.advance(0)
        bench.stabilize({joined(answer).member_id: answer for answer in answers})
        assert bench.join(instance_id="two", protocols={"round": b""}).response is None
        assert bench.group.state_name == "PreparingRebalance"

    def test_a_return_during_the_assignment_makes_a_rebalance(self) -> None:
        bench = ShardBench()
        for name in ("one", "two"):
            bench.join(instance_id=name)
        bench.advance(0)
        assert bench.group.state_name == "CompletingRebalance"
        bench.join(instance_id="two")
        assert bench.group.state_name == "PreparingRebalance"

    def test_a_duplicate_instance_takes_the_place_of_the_one_that_waits(self) -> None:
        bench = ShardBench(initial_rebalance_delay_ms=1000)
        first = bench.join(instance_id="one")
        second = bench.join(instance_id="one")
        assert first.error is ErrorCode.FENCED_INSTANCE_ID
        bench.advance(2000)
        assert second.error is ErrorCode.NONE

    def test_a_replacement_that_cannot_be_stored_did_not_happen(self) -> None:
        bench = ShardBench()
        ids = self.form(bench)
        bench.journal.error = ErrorCode.NOT_COORDINATOR
        assert bench.join(instance_id="two").error is ErrorCode.NOT_COORDINATOR
        assert bench.group.static_members == ids
        assert bench.heartbeat(ids["two"], 1, "two") is ErrorCode.NONE

    def test_an_absent_static_member_holds_its_place_through_a_rebalance(self) -> None:
        bench = ShardBench()
        ids = self.form(bench)
        rejoined = bench.join(ids["one"], instance_id="one")
        bench.heartbeat(ids["two"], 1, "two")
        bench.group.members[ids["two"]].session_timeout_ms = 1_000_000
        bench.heartbeat(ids["two"], 1, "two")
        bench.advance(60_000)
        assert {member.member_id for member in joined(rejoined).members} == set(ids.values())
