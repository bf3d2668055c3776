"""A broker for groups, topics on it, and members of every client, ended with the test however it ends."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import pytest

from odradek.testing import RunningBroker, broker
from tests.clients import go_build
from tests.groups.members.wish import CALM_SESSION_MS, Wish
from tests.groups.running_member import RunningMember
from tests.groups.topics import Topics

if TYPE_CHECKING:
    from collections.abc import Iterator

# What a second takes with the defaults takes a fraction of it here.
QUICK = {
    "group.initial.rebalance.delay.ms": 300,
    "group.min.session.timeout.ms": 1000,
    "group.consumer.min.session.timeout.ms": 1000,
    "group.consumer.heartbeat.interval.ms": 300,
    "group.consumer.min.heartbeat.interval.ms": 100,
    "offsets.topic.num.partitions": 5,
}


class Start(Protocol):
    def __call__(self, library: str, name: str, *topics: str, **wishes: Any) -> RunningMember: ...


@pytest.fixture
def consumer_session_ms() -> int:
    """Of the newer protocol; a test in which somebody is to be expelled has a parameter of this name."""
    return CALM_SESSION_MS


@pytest.fixture
def running(consumer_session_ms: int) -> Iterator[RunningBroker]:
    with broker({**QUICK, "group.consumer.session.timeout.ms": consumer_session_ms}) as running:
        yield running


@pytest.fixture
def topics(running: RunningBroker) -> Topics:
    return Topics(running.bootstrap_servers)


@pytest.fixture
def start(running: RunningBroker, request: pytest.FixtureRequest) -> Iterator[Start]:
    """Starts members, and ends those that the test has left."""
    started: list[RunningMember] = []

    def start_one(library: str, name: str, *topics: str, **wishes: Any) -> RunningMember:
        if library == "java":
            request.getfixturevalue("jvm")
        if library == "franz-go" and (reason := go_build.missing()):
            pytest.skip(reason)
        wish = Wish(running.bootstrap_servers, name, topics, **wishes)
        started.append(RunningMember(library, wish))
        return started[-1]

    yield start_one
    for member in started:
        member.kill()
