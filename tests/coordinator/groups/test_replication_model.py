"""Groups on a log whose high watermark lags, whose appends fail and whose leadership moves, under any sequence of
requests.

What must always hold: no answer before its records are committed; no answer from state that is not; every request
is answered exactly once, with NOT_COORDINATOR when the leadership ends first; the log alone gives the state back; and a
shard that is unloaded leaves no timers.
"""

from collections.abc import Callable
from typing import Any
from uuid import UUID

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from odradek.coordinator.groups.classic.group import ClassicGroup, ClassicState
from odradek.coordinator.groups.group import Committer
from odradek.coordinator.groups.group_records import (
    GroupKey,
    OffsetKey,
    decode_group_metadata,
    decode_key,
    decode_offset,
)
from odradek.coordinator.groups.offset_operations import NewOffset, commit_offsets, delete_offsets
from odradek.coordinator.runtime.pending_writes import TurnOfWrites
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.heartbeat import HeartbeatRequest
from odradek.protocol.messages.leave_group import MemberIdentity
from tests.coordinator.groups.classic.test_group_model import describe
from tests.coordinator.groups.shard_bench import GROUP, REBALANCE_MS, SESSION_MS, ShardBench
from tests.example_counts import examples

TOPIC_ID = UUID(int=7)
PARTITIONS = range(3)

numbers = st.integers(0, 20)


class Request:
    """A waiter that checks what it is answered with at the moment of the answer."""

    def __init__(self, check: Callable[[Any], None]) -> None:
        self._check = check
        self.response: Any = None
        self.refusal: ErrorCode | None = None

    @property
    def is_waiting(self) -> bool:
        return self.response is None and self.refusal is None

    @property
    def error(self) -> ErrorCode | None:
        return self.refusal if self.response is None else ErrorCode(self.response.error_code)

    def __call__(self, response: Any) -> None:
        assert self.is_waiting, "answered twice"
        self.response = response
        self._check(response)

    def refuse(self, error: ErrorCode) -> None:
        assert self.is_waiting, "answered twice"
        self.refusal = error


class Bench(ShardBench):
    """The requests of `ShardBench`, with waiters of this model."""

    def __init__(self) -> None:
        super().__init__(initial_rebalance_delay_ms=100)
        self.ends: list[Callable[[], None]] = []
        self.turn = TurnOfWrites(self.ends.append)
        self.journal.commits_at_once = False
        self.runtime_shard.unload()
        self.runtime_shard = self.make_runtime_shard(self.journal)
        self.runtime_shard.activate()

    def end_turn(self) -> None:
        ends, self.ends[:] = list(self.ends), []
        for end in ends:
            end()

    def committed_offsets(self, end_offset: int) -> dict[int, int]:
        """By partition, after this many records of the log."""
        offsets: dict[int, int] = {}
        for key, value in self.journal.records[:end_offset]:
            decoded = decode_key(key)
            if isinstance(decoded, OffsetKey):
                if value is None:
                    offsets.pop(decoded.partition, None)
                else:
                    offsets[decoded.partition] = decode_offset(value).offset
        return offsets

    def stored_generations(self, end_offset: int) -> set[int]:
        return {
            decode_group_metadata(value).generation
            for key, value in self.journal.records[:end_offset]
            if value is not None and isinstance(decode_key(key), GroupKey)
        }


class ReplicationModel(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.bench = Bench()
        self.requests: list[Request] = []
        self.members: list[str] = []
        self.last_offset = 0

    @property
    def log(self) -> Any:
        return self.bench.journal

    def track(self, check: Callable[[Any], None] = lambda _: None) -> Request:
        request = Request(check)
        self.requests.append(request)
        return request

    def pick(self, number: int) -> str:
        return self.members[number % len(self.members)] if self.members else ""

    @property
    def generation(self) -> int:
        group = self.bench.shard.groups.get(GROUP)
        return group.generation if isinstance(group, ClassicGroup) else -1

    # Requests

    @rule(number=numbers, is_known=st.booleans())
    def join(self, number: int, is_known: bool) -> None:
        def joined(response: Any) -> None:
            if response.error_code in (ErrorCode.NONE, ErrorCode.MEMBER_ID_REQUIRED):
                self.members.append(response.member_id)

        request = self.track(joined)
        self.bench.join(self.pick(number) if is_known else "", waiter=request)

    @rule(number=numbers)
    def sync(self, number: int) -> None:
        generation = self.generation

        def synced(response: Any) -> None:
            if response.error_code == ErrorCode.NONE:
                assert generation in self.bench.stored_generations(self.log.high_watermark), "not committed"

        group = self.bench.shard.groups.get(GROUP)
        members = list(group.members) if isinstance(group, ClassicGroup) else []
        request = self.track(synced)
        shares = {each: each.encode() for each in members}
        self.bench.sync(self.pick(number), generation, shares, waiter=request)

    @rule()
    def behave(self) -> None:
        """All members do what good clients do, so that the group is often stable."""
        self.bench.end_turn()
        self.catch_up(0)
        for member_id in dict.fromkeys(self.members):
            self.bench.join(member_id, waiter=self.track())
        self.bench.advance(1000)
        group = self.bench.shard.groups.get(GROUP)
        for member_id in list(group.members) if isinstance(group, ClassicGroup) else []:
            self.bench.sync(member_id, self.generation, {member_id: b"all"}, waiter=self.track())

    @rule(number=numbers)
    def heartbeat(self, number: int) -> None:
        bench = self.bench
        request = HeartbeatRequest(group_id=GROUP, generation_id=self.generation, member_id=self.pick(number))
        error = bench.shard.heartbeat(request)
        bench.shard.answer(self.track_end(), error)

    @rule(number=numbers)
    def leave(self, number: int) -> None:
        bench = self.bench
        answer = bench.shard.leave(GROUP, [MemberIdentity(member_id=self.pick(number))])
        bench.shard.answer(self.track_end(), answer)

    def track_end(self) -> Request:
        """A request that must not be answered before the present log end is committed."""
        end_offset = self.log.log_end_offset

        def check(_: Any) -> None:
            assert self.log.high_watermark >= end_offset, "it rests on what is not committed"

        return self.track(check)

    @rule(partition=st.sampled_from(PARTITIONS), number=numbers, is_member=st.booleans())
    def commit(self, partition: int, number: int, is_member: bool) -> None:
        self.last_offset += 1
        offset = self.last_offset

        def check(errors: Any) -> None:
            if errors == [ErrorCode.NONE]:
                history = range(self.log.high_watermark + 1)
                assert any(self.bench.committed_offsets(end).get(partition) == offset for end in history)

        request = self.track(check)
        committer = Committer(GROUP, self.pick(number), None, self.generation, 9)
        if not is_member:
            committer = Committer(GROUP, "", None, -1, 9)

        def done(errors: list[ErrorCode]) -> None:
            shard.answer(request, errors)

        shard = self.bench.shard
        errors = commit_offsets(shard, committer, [NewOffset("topic", TOPIC_ID, partition, offset, -1, "")], -1, done)
        if errors is not None:
            done(errors)

    @rule(partition=st.sampled_from(PARTITIONS))
    def fetch(self, partition: int) -> None:
        """The value of some moment between the request and its answer, and of a committed one."""
        shard, first = self.bench.shard, self.log.high_watermark

        def check(offset: int) -> None:
            committed = [
                self.bench.committed_offsets(end).get(partition, -1)
                for end in range(first, self.log.high_watermark + 1)
            ]
            assert offset in committed, "a read of uncommitted state"

        self.bench.runtime_shard.append_pending()
        known = shard.offsets.get(GROUP, "topic", partition)
        shard.answer(self.track(check), -1 if known is None else known.offset)

    @rule(partition=st.sampled_from(PARTITIONS))
    def delete_offset(self, partition: int) -> None:
        shard = self.bench.shard
        self.bench.runtime_shard.append_pending()
        result = delete_offsets(shard, GROUP, [("topic", partition)])
        shard.answer(self.track_end(), result)

    # The world

    @rule()
    def end_turn(self) -> None:
        self.bench.end_turn()

    @rule(lag=st.integers(0, 3))
    def catch_up(self, lag: int) -> None:
        log = self.log
        log.advance_high_watermark(max(log.high_watermark, log.log_end_offset - lag))

    @rule(duration_ms=st.sampled_from([1, 1000, 4999, SESSION_MS, REBALANCE_MS]))
    def wait(self, duration_ms: int) -> None:
        self.bench.advance(duration_ms)

    @rule(successes=st.integers(0, 1))
    def fail_appends(self, successes: int) -> None:
        self.log.error, self.log.successes_left = ErrorCode.COORDINATOR_NOT_AVAILABLE, successes

    @rule()
    def heal(self) -> None:
        self.log.error = ErrorCode.NONE

    @rule(is_truncated=st.booleans())
    def move_leadership(self, is_truncated: bool) -> None:
        bench, log = self.bench, self.log
        before = bench.shard
        group = before.groups.get(GROUP)
        stable = describe(group) if isinstance(group, ClassicGroup) and group.state is ClassicState.STABLE else None
        waiting = [request for request in self.requests if request.is_waiting]
        log.lose_leadership()
        assert all(request.error is ErrorCode.NOT_COORDINATOR for request in waiting)
        assert not bench.timers.deadlines
        assert not bench.clock.calls
        if is_truncated:
            log.truncate_to_high_watermark()
        log.gain_leadership()
        bench.reload()
        if not is_truncated:
            assert dict(bench.shard.offsets.items(GROUP)) == dict(before.offsets.items(GROUP))
            again = bench.shard.groups.get(GROUP)
            if stable is not None:
                assert isinstance(again, ClassicGroup)
                assert describe(again) == stable
        known = {index: each.offset for (_, index), each in bench.shard.offsets.items(GROUP)}
        assert known == bench.committed_offsets(log.log_end_offset)

    @precondition(lambda self: self.requests)
    @rule()
    def forget_answered_requests(self) -> None:
        self.requests = [request for request in self.requests if request.is_waiting]

    @invariant()
    def committed_requests_do_not_wait(self) -> None:
        if self.log.high_watermark == self.log.log_end_offset:
            assert len(self.bench.runtime_shard._waits) == 0

    def teardown(self) -> None:
        self.bench.runtime_shard.unload()
        assert all(not request.is_waiting for request in self.requests)
        assert not self.bench.timers.deadlines


TestReplicationModel = ReplicationModel.TestCase
TestReplicationModel.settings = settings(max_examples=examples(30), stateful_step_count=50, deadline=None)
