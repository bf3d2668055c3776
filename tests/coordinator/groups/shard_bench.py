"""A shard without a broker: the journal is a list, timers ring when a test says so, and answers are collected."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from odradek.coordinator.groups.classic.group import ClassicGroup
from odradek.coordinator.groups.classic.join import Join
from odradek.coordinator.groups.decision import TimerKey, TimerKind
from odradek.coordinator.runtime.loading import LatestValues
from odradek.coordinator.groups.group_settings import GroupSettings
from odradek.coordinator.groups.group_shard import GroupShard
from odradek.metadata.image import MetadataImage
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.heartbeat import HeartbeatRequest
from odradek.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from odradek.protocol.messages.leave_group import MemberIdentity
from odradek.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment, SyncGroupResponse
from tests.coordinator.groups.test_consumer_protocol import subscription

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from odradek.coordinator.groups.consumer.patterns import PatternMatch
    from odradek.coordinator.groups.group_records import CoordinatorRecord

GROUP = "group"
SESSION_MS = 10_000
REBALANCE_MS = 60_000


class ListJournal:
    """It takes a few offsets at a time, so that what writes many of them can fail half-way."""

    def __init__(self) -> None:
        self.records: list[CoordinatorRecord] = []
        self.error = ErrorCode.NONE
        self.successes_left = 0  # so many appends before the error
        self.largest_bytes = 1 << 20

    def append(self, records: Sequence[CoordinatorRecord]) -> ErrorCode:
        if self.error is not ErrorCode.NONE and not self.successes_left:
            return self.error
        if sum(len(each.value or b"") for each in records) > self.largest_bytes:
            return ErrorCode.UNKNOWN_SERVER_ERROR
        self.successes_left = max(self.successes_left - 1, 0)
        self.records += records
        return ErrorCode.NONE

    def parts(self, records: Sequence[CoordinatorRecord]) -> Iterator[Sequence[CoordinatorRecord]]:
        for first in range(0, len(records), 3):
            yield records[first : first + 3]


class ManualTimers:
    """Virtual time: `advance` rings in the order of the deadlines."""

    def __init__(self) -> None:
        self.now_ms = 1_000_000.0
        self.deadlines: dict[TimerKey, float] = {}

    def start(self, key: TimerKey, delay_ms: float) -> None:
        self.deadlines[key] = self.now_ms + delay_ms

    def stop(self, key: TimerKey) -> None:
        self.deadlines.pop(key, None)

    def is_running(self, key: TimerKey) -> bool:
        return key in self.deadlines


class Answer:
    """A waiter that remembers; None while the request waits."""

    def __init__(self) -> None:
        self.response: Any = None

    def __call__(self, response: Any) -> None:
        assert self.response is None, "answered twice"
        self.response = response

    @property
    def error(self) -> ErrorCode | None:
        return None if self.response is None else ErrorCode(self.response.error_code)


class ShardBench:
    def __init__(self, **settings: Any) -> None:
        self.image = MetadataImage(version=0, cluster_id="", controller_id=0)
        self.settings = GroupSettings(**{"initial_rebalance_delay_ms": 0, **settings})
        self.journal = ListJournal()
        self.matches: list[PatternMatch] = []  # asked for, and not done yet
        self.timers = ManualTimers()
        self.shard = self.make_shard()
        self.shard.finish_loading()
        self._ids = 0

    def make_shard(self) -> GroupShard:
        return GroupShard(
            self.journal,
            self.timers,
            lambda: round(self.timers.now_ms),
            lambda: self.settings,
            lambda: self.image,
            self.matches.append,
        )

    def replayed(self) -> GroupShard:
        """Another shard, made from the journal alone, as `load_shard` does it."""
        shard = self.make_shard()
        latest = LatestValues("journal")
        latest.put(self.journal.records)
        for key, value in latest.values.items():
            shard.replay(key, value)
        return shard

    def restart(self) -> None:
        self.shard.unload()
        self.timers.deadlines.clear()
        self.shard = self.replayed()
        self.shard.finish_loading()

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
            self.shard.on_timer(key)
        self.timers.now_ms = end_ms

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
    ) -> Answer:
        if protocols is None:
            protocols = {"range": subscription(list(topics))}
        self._ids += 1
        answer = Answer()
        request = JoinGroupRequest(
            group_id=group_id,
            session_timeout_ms=session_timeout_ms,
            rebalance_timeout_ms=rebalance_timeout_ms,
            member_id=member_id,
            group_instance_id=instance_id,
            protocol_type=protocol_type,
            protocols=[JoinGroupRequestProtocol(name=name, metadata=data) for name, data in protocols.items()],
        )
        self.shard.join(Join(request, version, "client", "/host", f"member-{self._ids}", answer))
        return answer

    def join_new(self, **wish: Any) -> tuple[str, Answer]:
        """A dynamic member in both of its steps (KIP-394): its id, and the answer that it waits for."""
        first = self.join(**wish)
        assert first.error is ErrorCode.MEMBER_ID_REQUIRED
        member_id = first.response.member_id
        return member_id, self.join(member_id, **wish)

    def sync(
        self, member_id: str, generation: int, assignments: Mapping[str, bytes] | None = None, **fields: Any
    ) -> Answer:
        answer = Answer()
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
        return answer

    def heartbeat(self, member_id: str, generation: int, instance_id: str | None = None) -> ErrorCode:
        return self.shard.heartbeat(
            HeartbeatRequest(
                group_id=GROUP, generation_id=generation, member_id=member_id, group_instance_id=instance_id
            )
        )

    def leave(self, *members: tuple[str, str | None]) -> list[ErrorCode]:
        identities = [MemberIdentity(member_id=each, group_instance_id=instance) for each, instance in members]
        return [ErrorCode(response.error_code) for response in self.shard.leave(GROUP, identities)]

    def form_group(self, count: int = 2, **wish: Any) -> list[str]:
        """A stable group of new members; each is assigned its own id."""
        members = [self.join_new(**wish) for _ in range(count)]
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
