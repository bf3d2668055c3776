"""A group under any sequence of joins, syncs, heartbeats, commits, silences and restarts.

What must always hold: one owner per partition and generation; a member that is not of the present generation changes
nothing; offsets move only by commits; and the state of the shard can be rebuilt from the log alone.
"""

from uuid import UUID

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from odradek.coordinator.groups.classic.group import ClassicGroup, ClassicState
from odradek.coordinator.groups.group import Committer
from odradek.coordinator.groups.offset_operations import NewOffset, delete_offsets
from odradek.protocol.errors import ErrorCode
from tests.coordinator.groups.shard_bench import GROUP, REBALANCE_MS, SESSION_MS, Answer, ShardBench
from tests.example_counts import examples

PARTITIONS = tuple(range(4))
TOPIC_ID = UUID(int=7)

instances = st.sampled_from([None, None, "one", "two"])
# Which of the members that ever were: also those that are long gone.
numbers = st.integers(0, 30)
generations = st.integers(0, 2)


class Client:
    """A consumer as the model knows it: the id it was last given, its generation, its partitions."""

    def __init__(self, instance_id: str | None) -> None:
        self.instance_id = instance_id
        self.member_id = ""
        self.generation = -1
        self.owned: set[int] = set()
        self.join: Answer | None = None
        self.sync: Answer | None = None

    def listen(self) -> None:
        """Take in what was answered since."""
        if self.join is not None and self.join.response is not None:
            response, self.join = self.join.response, None
            if response.error_code in (ErrorCode.NONE, ErrorCode.MEMBER_ID_REQUIRED):
                self.member_id = response.member_id
                self.generation = response.generation_id
                self.owned = set()
        if self.sync is not None and self.sync.response is not None:
            response, self.sync = self.sync.response, None
            if response.error_code == ErrorCode.NONE:
                self.owned = set(response.assignment)


class GroupModel(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.bench = ShardBench(initial_rebalance_delay_ms=1000)
        self.clients: list[Client] = []
        self.offsets: dict[int, int] = {}
        self.last_generation = 0
        self.lives = 0
        self.generations: dict[tuple[int, int], set[str]] = {}

    def group(self) -> ClassicGroup | None:
        group = self.bench.shard.groups.get(GROUP)
        return group if isinstance(group, ClassicGroup) else None

    def pick(self, number: int) -> Client:
        return self.clients[number % len(self.clients)]

    @rule(instance_id=instances)
    @precondition(lambda self: len(self.clients) < 8)
    def come(self, instance_id: str | None) -> None:
        client = Client(instance_id)
        client.join = self.bench.join(instance_id=instance_id)
        self.clients.append(client)

    @rule(number=numbers, forgets_id=st.booleans(), other_topics=st.booleans())
    @precondition(lambda self: self.clients)
    def join(self, number: int, forgets_id: bool, other_topics: bool) -> None:
        client = self.pick(number)
        if client.join is None:
            topics = ("topic", "other") if other_topics else ("topic",)
            member_id = "" if forgets_id else client.member_id
            client.join = self.bench.join(member_id, instance_id=client.instance_id, topics=topics)

    def is_current(self, client: Client, generation: int) -> bool:
        """Whether the group should listen to this client at all."""
        group = self.group()
        if group is None or client.member_id not in group.members or generation != group.generation:
            return False
        return client.instance_id is None or group.static_members.get(client.instance_id) == client.member_id

    def send_sync(self, client: Client, generation: int) -> None:
        group = self.group()
        members = [] if group is None else list(group.members)
        shares = {
            member_id: bytes(each for each in PARTITIONS if each % len(members) == index)
            for index, member_id in enumerate(members)
        }
        before, is_current = durable_state(self.bench), self.is_current(client, generation)
        client.sync = self.bench.sync(client.member_id, generation, shares, group_instance_id=client.instance_id)
        if not is_current:
            assert client.sync.error not in (None, ErrorCode.NONE), "a stranger is part of the generation"
        if client.sync.error not in (None, ErrorCode.NONE):
            assert durable_state(self.bench) == before, "a refused member changed the group"
            client.sync = None

    @rule(number=numbers, late=generations)
    @precondition(lambda self: self.clients)
    def sync(self, number: int, late: int) -> None:
        client = self.pick(number)
        if client.sync is None:
            self.send_sync(client, client.generation - late)

    @rule()
    def behave(self) -> None:
        """All do what good clients do, so that the group is often stable."""
        for _ in range(2):
            for client in self.clients:
                client.listen()
                if client.join is None:
                    client.join = self.bench.join(client.member_id, instance_id=client.instance_id)
            self.bench.advance(2000)
        for client in self.clients:
            client.listen()
            if client.join is None and client.sync is None:
                self.send_sync(client, client.generation)

    @rule(number=numbers, late=generations)
    @precondition(lambda self: self.clients)
    def heartbeat(self, number: int, late: int) -> None:
        client = self.pick(number)
        generation = client.generation - late
        error = self.bench.heartbeat(client.member_id, generation, client.instance_id)
        assert (error in (ErrorCode.NONE, ErrorCode.REBALANCE_IN_PROGRESS)) == self.is_current(client, generation)

    @rule(number=numbers)
    @precondition(lambda self: self.clients)
    def leave(self, number: int) -> None:
        client = self.pick(number)
        self.bench.leave((client.member_id, client.instance_id))

    @rule(number=numbers, partition=st.sampled_from(PARTITIONS), offset=st.integers(0, 100), late=generations)
    @precondition(lambda self: self.clients)
    def commit(self, number: int, partition: int, offset: int, late: int) -> None:
        client, group = self.pick(number), self.group()
        generation = client.generation - late
        is_current = self.is_current(client, generation)
        who = Committer(GROUP, client.member_id, client.instance_id, generation, 9)
        (error,) = self.bench.commit(who, [NewOffset("topic", TOPIC_ID, partition, offset, -1, "")])
        if error is ErrorCode.NONE:
            self.offsets[partition] = offset
            assert is_current or group is None or group.is_empty

    @rule(partition=st.sampled_from(PARTITIONS))
    def delete_offset(self, partition: int) -> None:
        result = delete_offsets(self.bench.shard, GROUP, [("topic", partition)])
        if result == [ErrorCode.NONE]:
            self.offsets.pop(partition, None)

    @rule(duration_ms=st.sampled_from([1, 1000, SESSION_MS // 2, SESSION_MS, REBALANCE_MS]))
    def wait(self, duration_ms: int) -> None:
        self.bench.advance(duration_ms)

    @rule()
    def restart(self) -> None:
        self.bench.restart()
        self.lives += 1
        group = self.group()
        self.last_generation = 0 if group is None else group.generation

    @rule()
    def lose_a_write(self) -> None:
        """The next append fails; the disk is well again after it."""
        self.bench.journal.error = ErrorCode.NOT_COORDINATOR
        self.bench.join(instance_id="three", group_id=GROUP)
        self.bench.advance(1)
        self.bench.journal.error = ErrorCode.NONE

    @invariant()
    def answers_are_heard(self) -> None:
        for client in self.clients:
            client.listen()

    @invariant()
    def a_partition_has_one_owner_in_a_generation(self) -> None:
        group = self.group()
        if group is None:
            return
        for partition in PARTITIONS:
            owners = {
                client.member_id
                for client in self.clients
                if partition in client.owned
                and client.generation == group.generation
                and client.member_id in group.members
            }
            assert len(owners) <= 1
        if group.state is ClassicState.STABLE:
            assigned = [each for member in group.members.values() for each in member.assignment]
            assert len(assigned) == len(set(assigned))

    @invariant()
    def offsets_move_only_by_commits(self) -> None:
        known = {index: each.offset for (_, index), each in self.bench.shard.offsets.items(GROUP)}
        assert known == self.offsets

    @invariant()
    def generations_never_go_back(self) -> None:
        group = self.group()
        if group is not None:
            assert group.generation >= self.last_generation
            self.last_generation = group.generation

    @invariant()
    def a_generation_has_one_set_of_members(self) -> None:
        """Who is in a generation is settled when it begins; afterwards members only go, or are replaced."""
        group = self.group()
        if group is not None and group.state in (ClassicState.COMPLETING_REBALANCE, ClassicState.STABLE):
            key = group.generation, self.lives
            places = {member.instance_id or member_id for member_id, member in group.members.items()}
            assert places <= self.generations.setdefault(key, places)

    @invariant()
    def the_group_is_consistent(self) -> None:
        group = self.group()
        if group is None:
            return
        waiting = [member for member in group.members.values() if member.awaiting_join is not None]
        assert group.awaiting_join_count == len(waiting)
        assert set(group.static_members.values()) <= set(group.members)
        assert (group.leader_id in group.members) == bool(group.members)
        assert group.is_empty == (not group.members and group.state is ClassicState.EMPTY)
        if group.state is not ClassicState.PREPARING_REBALANCE:
            assert group.is_empty == (not group.members)

    @invariant()
    def the_log_gives_it_all_back(self) -> None:
        again, group = self.bench.replayed(), self.group()
        assert dict(again.offsets.items(GROUP)) == dict(self.bench.shard.offsets.items(GROUP))
        restored = again.groups.get(GROUP)
        assert (restored is None) == (group is None)
        if group is not None and group.state in (ClassicState.STABLE, ClassicState.EMPTY):
            assert isinstance(restored, ClassicGroup)
            if group.state is ClassicState.STABLE:
                assert describe(restored) == describe(group)


def describe(group: ClassicGroup) -> object:
    """What of a group must survive."""
    members = {
        member_id: (member.instance_id, member.assignment, member.session_timeout_ms, member.rebalance_timeout_ms)
        for member_id, member in group.members.items()
    }
    return group.generation, group.protocol_name, group.leader_id, group.state, members, group.subscribed_topics


def durable_state(bench: ShardBench) -> object:
    group = bench.shard.groups.get(GROUP)
    return len(bench.journal.records), describe(group) if isinstance(group, ClassicGroup) else None


TestGroupModel = GroupModel.TestCase
TestGroupModel.settings = settings(max_examples=examples(50), stateful_step_count=50, deadline=None)
