"""A shard without a broker: its log is a list, its timers fire when a test says so, and its answers are collected."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

from odradek.coordinator.groups.classic.group import ClassicGroup
from odradek.coordinator.groups.classic.join import Join
from odradek.coordinator.groups.classic.join_budget import JoinBudget
from odradek.coordinator.groups.decision import PatternMatch, TimerKey, TimerKind
from odradek.coordinator.groups.group import Committer
from odradek.coordinator.groups.group_settings import GroupSettings
from odradek.coordinator.groups.group_shard import GroupShard
from odradek.coordinator.groups.offset_operations import NewOffset, commit_offsets
from odradek.coordinator.runtime.decision import Waiter
from odradek.coordinator.runtime.loading import LatestValues
from odradek.coordinator.runtime.pending_writes import TurnOfWrites
from odradek.coordinator.runtime.shard import Shard
from odradek.coordinator.runtime.shard_log import ShardLog
from odradek.host.clock import Timer
from odradek.metadata.image import MetadataImage
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.heartbeat import HeartbeatRequest
from odradek.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from odradek.protocol.messages.leave_group import MemberIdentity
from odradek.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment, SyncGroupResponse
from tests.coordinator.groups.test_consumer_protocol import subscription
from tests.coordinator.runtime.fake_shard_log import FakeShardLog

GROUP = "group"
SESSION_MS = 10_000
REBALANCE_MS = 60_000


class ManualTimers:
    """Virtual time: `advance` fires timers in the order of their deadlines."""

    def __init__(self) -> None:
        self.now_ms = 1_000_000.0
        self.deadlines: dict[Hashable, float] = {}

    def start(self, key: Hashable, delay_ms: float) -> None:
        self.deadlines[key] = self.now_ms + delay_ms

    def stop(self, key: Hashable) -> None:
        self.deadlines.pop(key, None)

    def is_running(self, key: Hashable) -> bool:
        return key in self.deadlines

    def stop_all(self) -> None:
        self.deadlines.clear()


class ManualClock:
    """The wall clock and the deadlines of answers, on the time of the timers."""

    def __init__(self, timers: ManualTimers) -> None:
        self._timers = timers
        self.calls: list[tuple[float, Callable[[], None]]] = []

    def now_ms(self) -> int:
        return round(self._timers.now_ms)

    def monotonic_ms(self) -> float:
        return self._timers.now_ms

    def call_after(self, delay_ms: float, callback: Callable[[], None]) -> Timer:
        call = (self._timers.now_ms + delay_ms, callback)
        self.calls.append(call)
        return Call(self.calls, call)

    def run_due(self) -> None:
        for call in [call for call in self.calls if call[0] <= self._timers.now_ms]:
            self.calls.remove(call)
            call[1]()


class Call:
    def __init__(self, calls: list[tuple[float, Callable[[], None]]], call: tuple[float, Callable[[], None]]) -> None:
        self._calls = calls
        self._call = call

    def cancel(self) -> None:
        if self._call in self._calls:
            self._calls.remove(self._call)


class Answer:
    """A waiter that remembers; None while the request waits."""

    def __init__(self) -> None:
        self.response: Any = None

    def __call__(self, response: Any) -> None:
        assert self.response is None, "answered twice"
        self.response = response

    def refuse(self, error: ErrorCode) -> None:
        self(JoinGroupResponse(error_code=error))

    @property
    def error(self) -> ErrorCode | None:
        return None if self.response is None else ErrorCode(self.response.error_code)


class ShardBench:
    def __init__(self, **settings: Any) -> None:
        self.image = MetadataImage(version=0, cluster_id="", controller_id=0)
        self.settings = GroupSettings(**{"initial_rebalance_delay_ms": 0, **settings})
        self.journal = FakeShardLog()
        self.joins = JoinBudget()
        self.matches: list[PatternMatch] = []  # requested, not done
        self.timers = ManualTimers()
        self.clock = ManualClock(self.timers)
        self.turn = TurnOfWrites(lambda end: end())  # every write is the first of its turn
        self.runtime_shard = self.make_runtime_shard(self.journal)
        self.runtime_shard.activate()
        self._ids = 0

    @property
    def shard(self) -> GroupShard:
        return self.runtime_shard.machine

    def make_runtime_shard(self, shard_log: ShardLog) -> Shard[GroupShard]:
        shard: Shard[GroupShard] = Shard(shard_log, self.clock, self.turn, lambda: self.settings.commit_timeout_ms)
        shard.timers = self.timers
        shard.machine = GroupShard(
            shard,
            self.clock.now_ms,
            lambda: self.settings,
            lambda: self.image,
            lambda _, match: self.matches.append(match),
            self.joins,
        )
        return shard

    def replayed(self) -> GroupShard:
        """Another state machine, made from the log alone, as `replay_log` does it."""
        machine = self.make_runtime_shard(self.journal).machine
        latest = LatestValues("journal")
        latest.put(self.journal.records)
        for key, value in latest.values.items():
            machine.replay(key, value)
        return machine

    def restart(self) -> None:
        self.runtime_shard.unload()
        self.reload()

    def reload(self) -> None:
        shard = self.make_runtime_shard(self.journal)
        latest = LatestValues("journal")
        latest.put(self.journal.records)
        for key, value in latest.values.items():
            shard.machine.replay(key, value)
        self.runtime_shard = shard
        shard.activate()

    def commit(self, committer: Committer, offsets: Sequence[NewOffset], retention_ms: int = -1) -> list[ErrorCode]:
        errors = commit_offsets(self.shard, committer, offsets, retention_ms, lambda _: None)
        assert errors is not None, "the commit shares a batch"
        return errors

    @property
    def group(self) -> ClassicGroup:
        group = self.shard.groups[GROUP]
        assert isinstance(group, ClassicGroup)
        return group

    def advance(self, duration_ms: float) -> None:
        end_ms = self.timers.now_ms + duration_ms
        while due := [(at_ms, key) for key, at_ms in self.timers.deadlines.items() if at_ms <= end_ms]:
            at_ms, key = min(due, key=lambda each: each[0])
            del self.timers.deadlines[key]
            self.timers.now_ms = max(at_ms, self.timers.now_ms)
            self.runtime_shard.on_timer(key)
        self.timers.now_ms = end_ms
        self.clock.run_due()

    def join(
        self,
        member_id: str = "",
        *,
        version: int = 9,
        instance_id: str | None = None,
        protocols: Mapping[str, bytes] | None = None,
        protocol_type: str = "consumer",
        topics: Sequence[str] = ("topic",),
        session_timeout_ms: int = SESSION_MS,
        rebalance_timeout_ms: int = REBALANCE_MS,
        group_id: str = GROUP,
        waiter: Waiter | None = None,
    ) -> Answer:
        if protocols is None:
            protocols = {"range": subscription(list(topics))}
        self._ids += 1
        request = JoinGroupRequest(
            group_id=group_id,
            session_timeout_ms=session_timeout_ms,
            rebalance_timeout_ms=rebalance_timeout_ms,
            member_id=member_id,
            group_instance_id=instance_id,
            protocol_type=protocol_type,
            protocols=[JoinGroupRequestProtocol(name=name, metadata=data) for name, data in protocols.items()],
        )
        answer = Answer() if waiter is None else waiter
        self.shard.join(Join(request, version, "client", "/host", f"member-{self._ids}", answer))
        return answer  # type: ignore[return-value]  # callers with a waiter ignore it

    def join_new(self, **fields: Any) -> tuple[str, Answer]:
        """A dynamic member in both of its steps (KIP-394): its id, and the answer that it waits for."""
        first = self.join(**fields)
        assert first.error is ErrorCode.MEMBER_ID_REQUIRED
        member_id = first.response.member_id
        return member_id, self.join(member_id, **fields)

    def sync(
        self,
        member_id: str,
        generation: int,
        assignments: Mapping[str, bytes] | None = None,
        waiter: Waiter | None = None,
        **fields: Any,
    ) -> Answer:
        answer = Answer() if waiter is None else waiter
        request = SyncGroupRequest(
            group_id=GROUP,
            generation_id=generation,
            member_id=member_id,
            assignments=[
                SyncGroupRequestAssignment(member_id=each, assignment=data)
                for each, data in (assignments or {}).items()
            ],
            **fields,
        )
        self.shard.sync(request, answer)
        return answer  # type: ignore[return-value]

    def heartbeat(self, member_id: str, generation: int, instance_id: str | None = None) -> ErrorCode:
        return self.shard.heartbeat(
            HeartbeatRequest(
                group_id=GROUP, generation_id=generation, member_id=member_id, group_instance_id=instance_id
            )
        )

    def leave(self, *members: tuple[str, str | None]) -> list[ErrorCode]:
        identities = [MemberIdentity(member_id=each, group_instance_id=instance) for each, instance in members]
        return [ErrorCode(response.error_code) for response in self.shard.leave(GROUP, identities)]

    def form_group(self, count: int = 2, **fields: Any) -> list[str]:
        """A stable group of new members; each is assigned its own id."""
        members = [self.join_new(**fields) for _ in range(count)]
        self.advance(self.settings.initial_rebalance_delay_ms * (count + 1))
        self.stabilize(dict(members))
        return [member_id for member_id, _ in members]

    def stabilize(self, joined: Mapping[str, Answer]) -> None:
        leader = next(answer.response.leader for answer in joined.values() if answer.response is not None)
        generation = self.group.generation
        assignments = {each: each.encode() for each in joined}
        answers = [self.sync(each, generation) for each in joined if each != leader]
        answers.append(self.sync(leader, generation, assignments))
        assert {answer.error for answer in answers} == {ErrorCode.NONE}
        assert self.group.state_name == "Stable"


def joined(answer: Answer) -> JoinGroupResponse:
    assert isinstance(answer.response, JoinGroupResponse)
    return answer.response


def synced(answer: Answer) -> SyncGroupResponse:
    assert isinstance(answer.response, SyncGroupResponse)
    return answer.response


def session_timer(member_id: str) -> TimerKey:
    return TimerKey(TimerKind.SESSION, GROUP, member_id)
