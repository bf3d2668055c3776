"""A consumer group under any sequence of joins, heartbeats, losses, silences, restarts and changes of topics.

What must always hold: a partition has one owner, by what members were assigned and did not give back; a member that is
fenced, stale or unknown changes nothing; epochs never go back; the log alone gives back what the shard knew. And when
all behave, everybody has a share and nothing is left over.
"""

from collections import Counter
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from odradek.coordinator.groups.consumer.group import ConsumerGroup
from odradek.coordinator.groups.group import Committer
from odradek.coordinator.groups.offset_operations import NewOffset
from odradek.protocol.errors import ErrorCode
from tests.coordinator.groups.consumer.consumer_bench import CONSUMER_SESSION_MS, ConsumerBench, Owned, describe
from tests.coordinator.groups.shard_bench import GROUP
from tests.example_counts import examples

TOPICS = ("one", "two")
PATTERNS = ("", "one|two", "t.*")

numbers = st.integers(0, 30)
subscriptions = st.sets(st.sampled_from(TOPICS))
REFUSALS = {
    ErrorCode.FENCED_MEMBER_EPOCH,
    ErrorCode.UNKNOWN_MEMBER_ID,
    ErrorCode.FENCED_INSTANCE_ID,
    ErrorCode.UNRELEASED_INSTANCE_ID,
    ErrorCode.GROUP_ID_NOT_FOUND,
}


class Client:
    """A consumer as it knows itself: it stops reading what it should not have, says so, and only then begins to read
    what it got."""

    def __init__(self, member_id: str, instance_id: str | None, topics: set[str], pattern: str) -> None:
        self.member_id = member_id
        self.instance_id = instance_id
        self.topics = topics
        self.pattern = pattern
        self.epoch = 0
        self.owned: Owned = set()
        self.assigned: Owned = set()

    def forget(self) -> None:
        self.epoch, self.owned, self.assigned = 0, set(), set()

    def follow(self) -> None:
        if self.owned <= self.assigned:
            self.owned = set(self.assigned)
        else:
            self.owned &= self.assigned


class ConsumerModel(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.bench = ConsumerBench(assignment_interval_ms=100)
        self.bench.create_topic("one", 3)
        self.clients: list[Client] = []
        self.epochs = (0, 0)
        self.count = 0

    # The group, and who is in it

    def group(self) -> ConsumerGroup | None:
        group = self.bench.shard.groups.get(GROUP)
        return group if isinstance(group, ConsumerGroup) else None

    def pick(self, number: int) -> Client:
        return self.clients[number % len(self.clients)]

    def durable_state(self) -> object:
        return len(self.bench.journal.records), describe(self.group())

    def send(self, client: Client, *, says_all: bool, is_lost: bool = False, epoch: int | None = None) -> None:
        epoch = client.epoch if epoch is None else epoch
        fields: dict[str, Any] = {"instance_id": client.instance_id}
        if says_all or epoch == 0:
            fields |= {
                "owned": set() if epoch == 0 else client.owned,
                "rebalance_timeout_ms": 60_000,
                "subscribed_topic_names": sorted(client.topics),
                "subscribed_topic_regex": client.pattern,
            }
            if epoch == 0:
                client.forget()
            client.assigned &= client.owned  # a member that reports fewer partitions must get its assignment again
        before = self.durable_state()
        response = self.bench.beat(client.member_id, epoch, **fields)
        error = ErrorCode(response.error_code)
        if error is not ErrorCode.NONE:
            assert error in REFUSALS
            assert self.durable_state() == before, "a refused member changed the group"
            client.forget()
        elif not is_lost:
            assert response.member_epoch >= epoch
            client.epoch = response.member_epoch
            assigned = self.bench.assigned(response)
            client.assigned = client.assigned if assigned is None else assigned

    # Rules

    @rule(instance_id=st.sampled_from([None, None, "i", "j"]), topics=subscriptions, pattern=st.sampled_from(PATTERNS))
    @precondition(lambda self: len(self.clients) < 5)
    def come(self, instance_id: str | None, topics: set[str], pattern: str) -> None:
        self.count += 1
        client = Client(f"m{self.count}", instance_id, topics, pattern)
        self.clients.append(client)
        self.send(client, says_all=True)

    @rule(number=numbers, says_all=st.booleans(), is_lost=st.booleans())
    @precondition(lambda self: self.clients)
    def heartbeat(self, number: int, says_all: bool, is_lost: bool) -> None:
        self.send(self.pick(number), says_all=says_all, is_lost=is_lost)

    @rule(number=numbers, late=st.sampled_from([-1, 1, 2]), says_all=st.booleans())
    @precondition(lambda self: self.clients)
    def stray_heartbeat(self, number: int, late: int, says_all: bool) -> None:
        """An epoch that is not the client's own: fenced, unless it is the one before and fits."""
        client = self.pick(number)
        if client.epoch - late > 0:
            self.send(client, says_all=says_all, epoch=client.epoch - late)

    @rule(number=numbers)
    @precondition(lambda self: self.clients)
    def follow(self, number: int) -> None:
        self.pick(number).follow()

    @rule(number=numbers, topics=subscriptions, pattern=st.sampled_from(PATTERNS))
    @precondition(lambda self: self.clients)
    def subscribe(self, number: int, topics: set[str], pattern: str) -> None:
        client = self.pick(number)
        client.topics, client.pattern = topics, pattern
        self.send(client, says_all=True)

    @rule(number=numbers, epoch=st.sampled_from([-1, -2]))
    @precondition(lambda self: self.clients)
    def leave(self, number: int, epoch: int) -> None:
        client = self.pick(number)
        if epoch == -2 and client.instance_id is None:
            return
        client.owned = set()
        self.bench.beat(client.member_id, epoch, instance_id=client.instance_id)
        self.clients.remove(client)

    @rule(number=numbers, name=st.sampled_from(TOPICS), partition=st.integers(0, 3), late=st.integers(-1, 2))
    @precondition(lambda self: self.clients)
    def commit(self, number: int, name: str, partition: int, late: int) -> None:
        client, group = self.pick(number), self.group()
        topic = self.bench.image.topics.get(name)
        if group is None or topic is None:
            return
        epoch = client.epoch - late
        who = Committer(GROUP, client.member_id, None, epoch, 10)
        offset = NewOffset(name, topic.topic_id, partition, 1, -1, "")
        (error,) = self.bench.commit(who, [offset])
        member = group.members.get(client.member_id)
        if error is ErrorCode.NONE and not (epoch < 0 and group.is_empty):
            assert member is not None
            since = member.assignment_epoch(topic.topic_id, partition)
            assert epoch == member.epoch or (since is not None and since <= epoch < member.epoch)

    @rule(name=st.sampled_from(TOPICS))
    def change_topic(self, name: str) -> None:
        topic = self.bench.image.topics.get(name)
        if topic is None:
            self.bench.create_topic(name, 2)
        elif len(topic.partitions) < 4:
            self.bench.add_partition(name)
        else:
            self.bench.delete_topic(name)
            for client in self.clients:  # what they had was of that topic, and not of the next of its name
                client.owned = {each for each in client.owned if each[0] != name}
                client.assigned = {each for each in client.assigned if each[0] != name}

    @rule()
    def match(self) -> None:
        self.bench.match()

    @rule(duration_ms=st.sampled_from([100, 10_001, CONSUMER_SESSION_MS // 2, CONSUMER_SESSION_MS, 60_000]))
    def wait(self, duration_ms: int) -> None:
        self.bench.advance(duration_ms)

    @rule()
    def restart(self) -> None:
        self.bench.matches.clear()
        self.bench.restart()

    @rule(number=numbers)
    @precondition(lambda self: self.clients)
    def lose_a_write(self, number: int) -> None:
        client = self.pick(number)
        before = self.durable_state()
        self.bench.journal.error = ErrorCode.NOT_COORDINATOR
        self.bench.beat(client.member_id, -1, instance_id=client.instance_id)
        self.bench.join_consumer("unknown", ["one"])
        self.bench.journal.error = ErrorCode.NONE
        assert self.durable_state() == before

    @rule()
    @precondition(lambda self: self.clients)
    def behave(self) -> None:
        """All do what good clients do, for as long as it takes."""
        for _ in range(12):
            self.bench.advance(100)
            for client in self.clients:
                self.send(client, says_all=True)
                client.follow()
            self.one_owner()
        self.bench.advance(10_001)
        for _ in range(12):
            self.bench.advance(100)
            for client in self.clients:
                self.send(client, says_all=True)
                client.follow()
            self.bench.match()
        self.converged()

    def converged(self) -> None:
        group = self.group()
        alive = [client for client in self.clients if client.epoch > 0]
        if group is None or {client.member_id for client in alive} != set(group.members):
            return  # an instance id is taken, or a static member is absent: its partitions stay assigned to it
        assert group.state_name == "Stable"
        wanted = {
            (name, index)
            for name in group.subscribed_topics
            if name in self.bench.image.topics
            for index in range(len(self.bench.image.topics[name].partitions))
        }
        assert Counter(each for client in alive for each in client.owned) == dict.fromkeys(wanted, 1)
        for client in alive:
            assert {name for name, _ in client.owned} <= group.topics_of(group.members[client.member_id])

    # Invariants

    @invariant()
    def one_owner(self) -> None:
        group = self.group()
        if group is None:
            return
        owners: dict[tuple[str, int], str] = {}
        for client in self.clients:
            member = group.members.get(client.member_id)
            if member is None or client.epoch not in (member.epoch, member.previous_epoch) or client.epoch == 0:
                continue  # it will learn with its next heartbeat that it is out
            for each in client.owned | client.assigned if client.owned <= client.assigned else client.owned:
                if each[0] in self.bench.image.topics:
                    assert owners.setdefault(each, client.member_id) == client.member_id, each
                    topic_id = self.bench.image.topics[each[0]].topic_id
                    assert member.assignment_epoch(topic_id, each[1]) is not None, each

    @invariant()
    def epochs_never_go_back(self) -> None:
        group = self.group()
        if group is not None:
            assert (group.epoch, group.target_epoch) >= self.epochs
            assert group.target_epoch <= group.epoch
            assert all(member.epoch <= group.target_epoch for member in group.members.values())
            self.epochs = group.epoch, group.target_epoch

    @invariant()
    def the_group_is_consistent(self) -> None:
        group = self.group()
        if group is None:
            return
        assert set(group.targets) <= set(group.members)
        assert {m.instance_id: m.member_id for m in group.members.values() if m.instance_id} == group.static_members
        assert set(group.patterns) == {m.topic_pattern for m in group.members.values()} - {""}
        targets = Counter(
            (topic_id, each) for some in group.targets.values() for topic_id in some for each in some[topic_id]
        )
        assert set(targets.values()) <= {1}

    @invariant()
    def the_log_gives_it_all_back(self) -> None:
        again = self.bench.replayed().groups.get(GROUP)
        assert describe(again) == describe(self.group())


TestConsumerModel = ConsumerModel.TestCase
TestConsumerModel.settings = settings(max_examples=examples(50), stateful_step_count=40, deadline=None)
