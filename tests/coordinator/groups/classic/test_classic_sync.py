"""Assignments, heartbeats, leaving, and session timeouts."""

from typing import Any

import pytest

from odradek.coordinator.groups.classic.group import ClassicGroup
from odradek.protocol.errors import ErrorCode
from tests.coordinator.groups.shard_bench import GROUP, REBALANCE_MS, SESSION_MS, ShardBench, joined, synced


def test_all_get_what_the_leader_assigned() -> None:
    bench = ShardBench()
    leader, leader_join = bench.join_new()
    follower, _ = bench.join_new()
    bench.advance(0)
    waiting = bench.sync(follower, 1)
    assert waiting.response is None
    own = bench.sync(leader, 1, {leader: b"L", follower: b"F", "stranger": b"?"})
    assert (synced(own).assignment, synced(waiting).assignment) == (b"L", b"F")
    assert synced(own).protocol_name == joined(leader_join).protocol_name
    assert synced(bench.sync(follower, 1)).assignment == b"F"


def test_a_member_that_the_leader_forgot_gets_nothing() -> None:
    bench = ShardBench()
    leader, _ = bench.join_new()
    follower, _ = bench.join_new()
    bench.advance(0)
    bench.sync(leader, 1, {leader: b"L"})
    assert synced(bench.sync(follower, 1)).assignment == b""


def test_assignments_far_over_the_limit_are_refused_before_a_record_is_built(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = ShardBench()
    leader, _ = bench.join_new()
    bench.advance(0)
    monkeypatch.setattr(ClassicGroup, "record", lambda *_: pytest.fail("a record was built"))
    refused = bench.sync(leader, 1, {leader: bytes(5 * bench.journal.batch_limit_bytes)})
    assert refused.error is ErrorCode.UNKNOWN_SERVER_ERROR
    assert bench.group.state_name == "PreparingRebalance"


def test_a_follower_cannot_assign() -> None:
    bench = ShardBench()
    leader, _ = bench.join_new()
    follower, _ = bench.join_new()
    bench.advance(0)
    bench.sync(follower, 1, {leader: b"", follower: b"everything"})
    assert bench.group.state_name == "CompletingRebalance"
    bench.sync(leader, 1, {leader: b"L", follower: b"F"})
    assert bench.group.members[follower].assignment == b"F"


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"generation": 0}, ErrorCode.ILLEGAL_GENERATION),
        ({"generation": 2}, ErrorCode.ILLEGAL_GENERATION),
        ({"member_id": "stranger"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"protocol_type": "connect"}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocol_name": "sticky"}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"group_instance_id": "one"}, ErrorCode.UNKNOWN_MEMBER_ID),
    ],
)
def test_a_sync_that_does_not_fit_changes_nothing(fields: dict[str, Any], error: ErrorCode) -> None:
    bench = ShardBench()
    leader, _ = bench.join_new()
    bench.advance(0)
    request = {"member_id": leader, "generation": 1, "assignments": {leader: b"mine"}, **fields}
    assert bench.sync(**request).error is error
    assert bench.group.state_name == "CompletingRebalance"


def test_a_sync_in_an_empty_or_unknown_group_is_unknown() -> None:
    bench = ShardBench()
    assert bench.sync("m", 1).error is ErrorCode.UNKNOWN_MEMBER_ID
    bench.join()
    assert bench.sync("m", 0).error is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_sync_while_others_join_must_wait_for_the_rebalance() -> None:
    bench = ShardBench()
    leader, follower = bench.form_group()
    bench.join(leader)
    assert bench.sync(follower, 1).error is ErrorCode.REBALANCE_IN_PROGRESS


def test_an_assignment_that_cannot_be_stored_makes_all_join_again() -> None:
    bench = ShardBench()
    leader, _ = bench.join_new()
    follower, _ = bench.join_new()
    bench.advance(0)
    waiting = bench.sync(follower, 1)
    bench.journal.error = ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert bench.sync(leader, 1, {leader: b"L"}).error is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert waiting.error is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert bench.group.state_name == "PreparingRebalance"


def test_a_rebalance_interrupts_those_who_wait_for_their_assignment() -> None:
    bench = ShardBench()
    bench.join_new()
    follower, _ = bench.join_new()
    bench.advance(0)
    waiting = bench.sync(follower, 1)
    bench.join_new()
    assert waiting.error is ErrorCode.REBALANCE_IN_PROGRESS


def test_who_never_asks_for_its_assignment_is_removed() -> None:
    bench = ShardBench()
    leader, follower = bench.join_new()[0], bench.join_new()[0]
    bench.advance(0)
    bench.sync(leader, 1, {leader: b"L", follower: b"F"})
    for _ in range(REBALANCE_MS // 5000):
        bench.heartbeat(leader, 1)
        bench.heartbeat(follower, 1)
        bench.advance(5000)
    assert list(bench.group.members) == [leader]
    assert bench.group.state_name == "PreparingRebalance"


class TestHeartbeats:
    def test_a_silent_member_is_removed_when_its_session_ends(self) -> None:
        bench = ShardBench()
        first, second = bench.form_group()
        bench.advance(SESSION_MS - 1)
        assert bench.heartbeat(first, 1) is ErrorCode.NONE
        bench.advance(1)
        assert bench.heartbeat(first, 1) is ErrorCode.REBALANCE_IN_PROGRESS
        assert bench.heartbeat(second, 1) is ErrorCode.UNKNOWN_MEMBER_ID

    def test_a_group_whose_members_all_fell_silent_is_empty(self) -> None:
        bench = ShardBench()
        bench.form_group()
        bench.advance(SESSION_MS + REBALANCE_MS)
        assert bench.group.is_empty
        assert bench.group.generation == 2
        assert not bench.timers.deadlines

    def test_a_member_whose_request_waits_is_alive(self) -> None:
        bench = ShardBench()
        leader, follower = bench.form_group(session_timeout_ms=SESSION_MS)
        waiting = bench.join(leader)
        for _ in range(5):
            bench.advance(SESSION_MS - 1000)
            assert bench.heartbeat(follower, 1) is ErrorCode.REBALANCE_IN_PROGRESS
        assert waiting.response is None
        bench.join(follower)
        assert waiting.error is ErrorCode.NONE

    def test_who_does_not_rejoin_in_time_is_out_of_the_generation_however_alive(self) -> None:
        bench = ShardBench()
        leader, follower = bench.form_group()
        rejoined = bench.join(leader)
        for _ in range(REBALANCE_MS // 5000):
            assert bench.heartbeat(follower, 1) is ErrorCode.REBALANCE_IN_PROGRESS
            bench.advance(5000)
        assert [member.member_id for member in joined(rejoined).members] == [leader]
        assert bench.heartbeat(follower, 1) is ErrorCode.UNKNOWN_MEMBER_ID

    @pytest.mark.parametrize(("generation", "error"), [(0, ErrorCode.ILLEGAL_GENERATION), (1, ErrorCode.NONE)])
    def test_a_heartbeat_must_know_the_generation(self, generation: int, error: ErrorCode) -> None:
        bench = ShardBench()
        (member,) = bench.form_group(1)
        assert bench.heartbeat(member, generation) is error

    def test_a_heartbeat_of_an_unknown_group_or_member_is_unknown(self) -> None:
        bench = ShardBench()
        assert bench.heartbeat("m", 1) is ErrorCode.UNKNOWN_MEMBER_ID
        bench.form_group(1)
        assert bench.heartbeat("m", 1) is ErrorCode.UNKNOWN_MEMBER_ID


class TestLeaving:
    def test_the_others_share_what_a_member_leaves(self) -> None:
        bench = ShardBench()
        leader, follower = bench.form_group()
        assert bench.leave((leader, None)) == [ErrorCode.NONE]
        assert bench.heartbeat(follower, 1) is ErrorCode.REBALANCE_IN_PROGRESS
        rejoined = bench.join(follower)
        assert joined(rejoined).leader == follower
        assert joined(rejoined).generation_id == 2

    def test_the_last_one_leaves_an_empty_group(self) -> None:
        bench = ShardBench()
        (member,) = bench.form_group(1)
        assert bench.leave((member, None)) == [ErrorCode.NONE]
        assert bench.group.is_empty
        assert bench.replayed().groups[GROUP].is_empty
        assert not bench.timers.deadlines

    def test_several_leave_at_once_and_each_has_its_own_answer(self) -> None:
        bench = ShardBench()
        first, second = bench.form_group()
        pending = joined(bench.join()).member_id
        assert bench.leave((first, None), ("stranger", None), (pending, None), ("", None)) == [
            ErrorCode.NONE,
            ErrorCode.UNKNOWN_MEMBER_ID,
            ErrorCode.NONE,
            ErrorCode.UNKNOWN_MEMBER_ID,
        ]
        assert list(bench.group.members) == [second]

    def test_a_static_member_is_removed_by_its_name(self) -> None:
        bench = ShardBench()
        answer = bench.join(instance_id="one")
        bench.advance(0)
        bench.stabilize({joined(answer).member_id: answer})
        assert bench.leave(("", "other"), ("", "one")) == [ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.NONE]
        assert bench.group.is_empty

    def test_a_waiting_member_that_leaves_is_answered(self) -> None:
        bench = ShardBench()
        leader, follower = bench.form_group()
        waiting = bench.join(leader)
        bench.leave((leader, None))
        assert waiting.error is ErrorCode.UNKNOWN_MEMBER_ID
        assert joined(bench.join(follower)).leader == follower

    def test_an_unknown_group_has_no_member_that_could_leave(self) -> None:
        assert ShardBench().leave(("m", None)) == [ErrorCode.UNKNOWN_MEMBER_ID]


class TestRestarts:
    def test_members_go_on_after_a_restart(self) -> None:
        bench = ShardBench()
        first, second = bench.form_group()
        bench.restart()
        assert bench.heartbeat(first, 1) is ErrorCode.NONE
        assert synced(bench.sync(second, 1)).assignment == second.encode()

    def test_members_that_do_not_come_back_time_out(self) -> None:
        bench = ShardBench()
        first, second = bench.form_group()
        bench.restart()
        bench.advance(SESSION_MS - 1)
        bench.heartbeat(first, 1)
        bench.advance(1)
        assert second not in bench.group.members

    def test_requests_that_wait_while_the_shard_is_unloaded_get_not_coordinator(self) -> None:
        bench = ShardBench()
        leader, _ = bench.form_group()
        waiting = bench.join(leader)
        bench.restart()
        assert waiting.error is ErrorCode.NOT_COORDINATOR
