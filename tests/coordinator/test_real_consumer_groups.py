"""Real clients of the newer protocol (KIP-848) against a real broker process."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from odradek.testing import RunningBroker, broker
from tests.coordinator.running_member import RunningMember, wait_until
from tests.coordinator.test_real_clients import committed, make_topics, produce

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

QUICK = {
    "group.consumer.heartbeat.interval.ms": 200,
    "group.consumer.min.heartbeat.interval.ms": 200,
    "group.consumer.session.timeout.ms": 3000,
    "group.consumer.min.session.timeout.ms": 3000,
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

    def start_one(name: str, *topics: str, library: str = "confluent-consumer", strategy: str = "-") -> RunningMember:
        started.append(RunningMember(library, running.bootstrap_servers, name, topics, strategy))
        return started[-1]

    yield start_one
    for member in started:
        member.kill()


def test_members_come_go_and_die_and_everything_is_read(
    running: RunningBroker, start: Callable[..., RunningMember]
) -> None:
    make_topics(running, topic=6)
    first = start("c1", "topic")
    produce(running, "topic", 0, 600, 6)
    wait_until(lambda: len(first.assigned) == 6 and len(first.read) >= 600, "all partitions, 600 records")
    second, third = start("c2", "topic"), start("c3", "topic")
    members = [first, second, third]
    wait_until(lambda: [len(each.assigned) for each in members] == [2, 2, 2], "two partitions each")
    assert len(set.union(*(each.assigned for each in members))) == 6
    produce(running, "topic", 600, 600, 6)
    wait_until(lambda: {number for each in members for number in each.read} == set(range(1200)), "1,200 records")
    second.leave()
    wait_until(lambda: sorted(len(each.assigned) for each in (first, third)) == [3, 3], "three partitions each")
    third.kill()
    wait_until(lambda: len(first.assigned) == 6, "all partitions again")
    produce(running, "topic", 1200, 600, 6)
    wait_until(lambda: {number for each in members for number in each.read} == set(range(1800)), "all records")
    first.leave()


def test_a_pattern_finds_the_topics_that_are_there_and_those_that_come(
    running: RunningBroker, start: Callable[..., RunningMember]
) -> None:
    make_topics(running, orders=1, people=1)
    member = start("c1", "^orders.*")
    wait_until(lambda: member.assigned == {("orders", 0)}, "the one that matches")
    make_topics(running, **{"orders-later": 2})
    wait_until(lambda: member.assigned == {("orders", 0), ("orders-later", 0), ("orders-later", 1)}, "the new one too")
    member.leave()


@pytest.mark.parametrize("way", ["restart", "kill"])
def test_a_group_goes_on_after_the_broker(
    running: RunningBroker, start: Callable[..., RunningMember], way: str
) -> None:
    make_topics(running, topic=2)
    produce(running, "topic", 0, 100, 2)
    member = start("c1", "topic")
    wait_until(lambda: len(member.read) >= 100 and committed(running) == {0: 50, 1: 50}, "100 records, committed")
    if way == "kill":
        running.kill()
        running.start()
    else:
        running.restart()
    produce(running, "topic", 100, 100, 2)
    wait_until(lambda: set(member.read) == set(range(200)), "200 records")
    member.leave()


def test_a_running_group_is_upgraded_member_by_member_and_back(
    running: RunningBroker, start: Callable[..., RunningMember]
) -> None:
    make_topics(running, topic=4)
    old = start("c1", "topic", library="confluent", strategy="cooperative-sticky")
    wait_until(lambda: len(old.assigned) == 4, "all partitions")
    new = start("c2", "topic")
    wait_until(lambda: len(old.assigned) == len(new.assigned) == 2, "two partitions each, in two protocols")
    produce(running, "topic", 0, 400, 4)
    wait_until(lambda: {*old.read, *new.read} == set(range(400)), "400 records")
    new.leave()
    wait_until(lambda: len(old.assigned) == 4, "all partitions, classic again")
    produce(running, "topic", 400, 400, 4)
    wait_until(lambda: {*old.read, *new.read} == set(range(800)), "800 records")
    old.leave()
