"""Groups of real clients against a real broker process: assignments, comings and goings, restarts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import confluent_kafka
import pytest
from confluent_kafka import admin

from odradek.testing import RunningBroker, broker
from tests.coordinator.running_member import LIBRARIES, RunningMember, wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

GROUP = "group"
QUICK = {
    "group.initial.rebalance.delay.ms": 300,
    "group.min.session.timeout.ms": 1000,
    "offsets.topic.num.partitions": 5,
}


@pytest.fixture
def running() -> Iterator[RunningBroker]:
    with broker(QUICK) as running:
        yield running


@pytest.fixture
def start(running: RunningBroker) -> Iterator[Callable[..., RunningMember]]:
    """Starts members, and ends those that a failed test has left."""
    started: list[RunningMember] = []

    def start_one(library: str, name: str, *topics: str, strategy: str = "range") -> RunningMember:
        started.append(RunningMember(library, running.bootstrap_servers, name, topics, strategy))
        return started[-1]

    yield start_one
    for member in started:
        member.kill()


def make_topics(running: RunningBroker, **partitions: int) -> None:
    library: Any = admin
    client = library.AdminClient({"bootstrap.servers": running.bootstrap_servers, "log_level": 0})
    topics = [library.NewTopic(name, count, 1) for name, count in partitions.items()]
    for future in client.create_topics(topics).values():
        future.result(10)


def produce(running: RunningBroker, topic: str, first: int, count: int, partitions: int) -> None:
    producer = confluent_kafka.Producer({"bootstrap.servers": running.bootstrap_servers, "log_level": 0})
    for number in range(first, first + count):
        producer.produce(topic, b"%d" % number, partition=number % partitions)
    assert producer.flush(20) == 0


EXAMPLES = {
    "range": [{("A", 0), ("B", 0)}, {("A", 1), ("B", 1)}, set()],
    "roundrobin": [{("A", 0), ("B", 1)}, {("A", 1)}, {("B", 0)}],
}


@pytest.mark.parametrize("strategy", EXAMPLES)
@pytest.mark.parametrize("library", LIBRARIES)
def test_three_consumers_of_two_topics_share_as_the_strategy_says(
    running: RunningBroker, start: Callable[..., RunningMember], library: str, strategy: str
) -> None:
    make_topics(running, A=2, B=2)
    members = [start(library, name, "A", "B", strategy=strategy) for name in ("c1", "c2", "c3")]
    wait_until(lambda: [each.assigned for each in members] == EXAMPLES[strategy], f"{strategy} over c1, c2, c3")
    for member in members:
        member.leave()


@pytest.mark.parametrize(
    ("library", "strategy"),
    [
        ("kafka-python", "sticky"),
        ("aiokafka", "sticky"),
        ("confluent", "cooperative-sticky"),
        ("kafka-python", "cooperative-sticky"),
    ],
)
def test_sticky_strategies_share_evenly_and_who_stays_keeps_what_it_had(
    running: RunningBroker, start: Callable[..., RunningMember], library: str, strategy: str
) -> None:
    make_topics(running, A=2, B=2)
    everything = {(topic, index) for topic in "AB" for index in range(2)}
    members = [start(library, name, "A", "B", strategy=strategy) for name in ("c1", "c2", "c3")]

    def share(sizes: list[int]) -> bool:
        parts = [member.assigned for member in members]
        return sorted(map(len, parts)) == sizes and set().union(*parts) == everything

    wait_until(lambda: share([1, 1, 2]), "four partitions among three")
    leaver = members.pop(0)
    before = [set(member.assigned) for member in members]
    leaver.leave()
    wait_until(lambda: share([2, 2]), "four partitions among two")
    assert all(had <= member.assigned for had, member in zip(before, members, strict=True))
    for member in members:
        member.leave()


def test_one_group_in_three_languages_reads_everything_through_comings_and_goings(
    running: RunningBroker, start: Callable[..., RunningMember]
) -> None:
    make_topics(running, topic=6)
    first = start("confluent", "c1", "topic")
    produce(running, "topic", 0, 600, 6)
    wait_until(lambda: len(first.read) >= 600, "600 records")
    others = [start("kafka-python", "c2", "topic"), start("aiokafka", "c3", "topic")]
    members = [first, *others]
    wait_until(lambda: [len(each.assigned) for each in members] == [2, 2, 2], "two partitions each")
    produce(running, "topic", 600, 600, 6)
    wait_until(lambda: {number for each in members for number in each.read} == set(range(1200)), "1,200 records")
    others[0].leave()
    wait_until(lambda: sorted(len(each.assigned) for each in (first, others[1])) == [3, 3], "three partitions each")
    produce(running, "topic", 1200, 600, 6)
    wait_until(lambda: {number for each in members for number in each.read} == set(range(1800)), "all records")
    first.leave()
    others[1].leave()


def test_the_partitions_of_a_killed_member_go_to_the_others(
    running: RunningBroker, start: Callable[..., RunningMember]
) -> None:
    make_topics(running, topic=2)
    survivor = start("confluent", "c1", "topic")
    wait_until(lambda: len(survivor.assigned) == 2, "both partitions")
    doomed = start("confluent", "c2", "topic")
    wait_until(lambda: len(survivor.assigned) == len(doomed.assigned) == 1, "one partition each")
    doomed.kill()
    wait_until(lambda: len(survivor.assigned) == 2, "both partitions again")
    survivor.leave()


@pytest.mark.parametrize("way", ["restart", "kill"])
@pytest.mark.parametrize("library", LIBRARIES)
def test_a_group_goes_on_after_the_broker(
    running: RunningBroker, start: Callable[..., RunningMember], library: str, way: str
) -> None:
    make_topics(running, topic=2)
    produce(running, "topic", 0, 100, 2)
    member = start(library, "c1", "topic")
    wait_until(lambda: len(member.read) >= 100 and committed(running) == {0: 50, 1: 50}, "100 records, committed")
    if way == "kill":
        running.kill()
        running.start()
    else:
        running.restart()
    assert committed(running) == {0: 50, 1: 50}
    produce(running, "topic", 100, 100, 2)
    wait_until(lambda: set(member.read) == set(range(200)), "200 records")
    member.leave()


def committed(running: RunningBroker) -> dict[int, int]:
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": running.bootstrap_servers, "group.id": GROUP, "log_level": 0}
    )
    partitions = [confluent_kafka.TopicPartition("topic", index) for index in range(2)]
    try:
        return {each.partition: each.offset for each in consumer.committed(partitions, 10)}
    finally:
        consumer.close()
