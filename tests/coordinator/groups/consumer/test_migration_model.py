"""A group whose members speak two protocols, in any order of comings, goings, silences and restarts.

It is classic or a consumer group as its members make it. What must always hold: while it is a consumer group, a
partition has one owner; the log alone gives the group back; and when all behave, everybody reads and nothing is left.
"""

from collections import Counter

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from odradek.coordinator.groups.classic.group import ClassicGroup, ClassicState
from odradek.coordinator.groups.consumer.group import ConsumerGroup
from odradek.coordinator.groups.consumer_protocol import decode_assignment, encode_assignment
from odradek.protocol.errors import ErrorCode
from tests.coordinator.groups.classic.test_group_model import describe as describe_classic
from tests.coordinator.groups.consumer.consumer_bench import CONSUMER_SESSION_MS, Owned, describe
from tests.coordinator.groups.consumer.test_consumer_migration import ALL, MixedBench
from tests.coordinator.groups.shard_bench import GROUP, SESSION_MS, Answer
from tests.example_counts import examples

numbers = st.integers(0, 30)


class ClassicClient:
    """A cooperative consumer: it keeps what it has while it joins again, and gives up what it is not assigned."""

    def __init__(self) -> None:
        self.member_id = ""
        self.generation = -1
        self.owned: Owned = set()
        self.joining: Answer | None = None
        self.syncing: Answer | None = None
        self.must_join = True

    def forget(self, error: ErrorCode) -> None:
        self.must_join = True
        if error is not ErrorCode.REBALANCE_IN_PROGRESS:
            self.owned, self.generation = set(), -1
        if error is ErrorCode.UNKNOWN_MEMBER_ID:
            self.member_id = ""

    def act(self, bench: MixedBench) -> None:
        """The next thing that such a client does."""
        if self.joining is not None:
            self._hear_join(bench)
        elif self.syncing is not None:
            self._hear_sync()
        elif self.must_join:
            self.joining = bench.join_classic(self.member_id, self.owned)
            self._hear_join(bench)
        else:
            error = bench.heartbeat(self.member_id, self.generation)
            if error is not ErrorCode.NONE:
                self.forget(error)

    def _hear_join(self, bench: MixedBench) -> None:
        assert self.joining is not None
        if self.joining.response is None:
            return
        response, self.joining = self.joining.response, None
        error = ErrorCode(response.error_code)
        if error is ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = response.member_id
        elif error is not ErrorCode.NONE:
            self.forget(error)
        else:
            self.member_id, self.generation = response.member_id, response.generation_id
            members = [each.member_id for each in response.members]
            shares = {
                member_id: encode_assignment({"topic": range(index, 4, len(members))}, b"\0\1")
                for index, member_id in enumerate(members)
            }
            self.syncing = bench.sync(self.member_id, self.generation, shares)
            self._hear_sync()

    def _hear_sync(self) -> None:
        assert self.syncing is not None
        if self.syncing.response is None:
            return
        response, self.syncing = self.syncing.response, None
        if response.error_code != ErrorCode.NONE:
            self.forget(ErrorCode(response.error_code))
            return
        topics = decode_assignment(response.assignment).assigned_partitions
        assigned = {(each.topic, partition) for each in topics for partition in each.partitions}
        self.must_join = bool(self.owned - assigned)
        self.owned = assigned


class ConsumerClient:
    def __init__(self, member_id: str) -> None:
        self.member_id = member_id
        self.epoch = 0
        self.owned: Owned = set()

    def act(self, bench: MixedBench) -> None:
        response = (
            bench.join_consumer(self.member_id)
            if self.epoch == 0
            else bench.beat(self.member_id, self.epoch, owned=self.owned)
        )
        if response.error_code != ErrorCode.NONE:
            self.epoch, self.owned = 0, set()
            return
        self.epoch = response.member_epoch
        assigned = bench.assigned(response)
        self.owned = self.owned if assigned is None else assigned


class MigrationModel(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.bench = MixedBench(initial_rebalance_delay_ms=100)
        self.clients: list[ClassicClient | ConsumerClient] = []
        self.count = 0

    @rule(is_classic=st.booleans())
    @precondition(lambda self: len(self.clients) < 5)
    def come(self, is_classic: bool) -> None:
        self.count += 1
        self.clients.append(ClassicClient() if is_classic else ConsumerClient(f"m{self.count}"))

    @rule(number=numbers)
    @precondition(lambda self: self.clients)
    def act(self, number: int) -> None:
        self.clients[number % len(self.clients)].act(self.bench)

    @rule(number=numbers, says_so=st.booleans())
    @precondition(lambda self: self.clients)
    def go(self, number: int, says_so: bool) -> None:
        client = self.clients.pop(number % len(self.clients))
        if not says_so:
            return
        if isinstance(client, ConsumerClient):
            self.bench.beat(client.member_id, -1)
        elif client.member_id:
            self.bench.leave((client.member_id, None))

    @rule(duration_ms=st.sampled_from([100, SESSION_MS, CONSUMER_SESSION_MS, 60_000]))
    def wait(self, duration_ms: int) -> None:
        self.bench.advance(duration_ms)

    @rule()
    def restart(self) -> None:
        self.bench.restart()

    @rule(number=numbers, is_full=st.booleans())
    @precondition(lambda self: self.clients)
    def lose_a_write(self, number: int, is_full: bool) -> None:
        """The disk fails, or what is to be written is too large, at best while the group changes its protocol."""
        client, journal = self.clients[number % len(self.clients)], self.bench.journal
        if is_full:
            journal.largest_bytes = 150
        else:
            journal.error = ErrorCode.NOT_COORDINATOR
        if isinstance(client, ConsumerClient):
            self.bench.beat(client.member_id, -1)
        self.bench.join_consumer("unknown")
        journal.error, journal.largest_bytes = ErrorCode.NONE, 1 << 20

    @rule()
    @precondition(lambda self: self.clients)
    def behave(self) -> None:
        """All do what good clients do, until those that went silently are forgotten too."""
        for _ in range(150):
            self.bench.advance(1000)
            for client in self.clients:
                client.act(self.bench)
        group = self.bench.shard.groups[GROUP]
        assert len(self.clients) == len(getattr(group, "members", ()))
        assert group.state_name == "Stable"
        has_newer = any(isinstance(client, ConsumerClient) for client in self.clients)
        assert isinstance(group, ConsumerGroup) == has_newer
        assert Counter(each for client in self.clients for each in client.owned) == dict.fromkeys(ALL, 1)

    @invariant()
    def one_owner(self) -> None:
        group = self.bench.shard.groups.get(GROUP)
        if not isinstance(group, ConsumerGroup):
            return
        topic_id = self.bench.image.topics["topic"].topic_id
        owners = Counter(
            partition
            for member in group.members.values()
            for part in (member.assigned, member.pending_revocation)
            for partition in part.get(topic_id, {})
        )
        assert set(owners.values()) <= {1}

    @invariant()
    def the_log_gives_it_back(self) -> None:
        group, again = self.bench.shard.groups.get(GROUP), self.bench.replayed().groups.get(GROUP)
        assert type(again) is type(group)
        if isinstance(group, ConsumerGroup):
            assert describe(again) == describe(group)
        elif isinstance(group, ClassicGroup) and group.state is ClassicState.STABLE:
            assert isinstance(again, ClassicGroup)
            assert describe_classic(again) == describe_classic(group)


TestMigrationModel = MigrationModel.TestCase
TestMigrationModel.settings = settings(max_examples=examples(30), stateful_step_count=30, deadline=None)
