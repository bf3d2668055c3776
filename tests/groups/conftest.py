"""A broker for groups, topics on it, and members of every client; all end with the test."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import pytest

from odradek.testing import RunningBroker, broker
from tests.clients import go_build
from tests.groups.members.member_settings import CALM_SESSION_MS, MemberSettings
from tests.groups.running_member import RunningMember
from tests.groups.topics import Topics

if TYPE_CHECKING:
    from collections.abc import Iterator

# Shorter than the defaults, so that tests wait less.
QUICK = {
    "group.initial.rebalance.delay.ms": 300,
    "group.min.session.timeout.ms": 1000,
    "group.consumer.min.session.timeout.ms": 1000,
    "group.consumer.heartbeat.interval.ms": 300,
    "group.consumer.min.heartbeat.interval.ms": 100,
    "offsets.topic.num.partitions": 5,
}


class Start(Protocol):
    def __call__(self, library: str, name: str, *topics: str, **settings: Any) -> RunningMember: ...


@pytest.fixture
def consumer_session_ms() -> int:
    """Of the newer protocol; a test that expects a member to be expelled has a parameter of this name."""
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
    """Starts members, and kills those that still run at the end of the test."""
    started: list[RunningMember] = []

    def start_one(library: str, name: str, *topics: str, **settings: Any) -> RunningMember:
        if library == "java":
            request.getfixturevalue("jvm")
        if library == "franz-go" and (reason := go_build.missing()):
            pytest.skip(reason)
        started.append(RunningMember(library, MemberSettings(running.bootstrap_servers, name, topics, **settings)))
        return started[-1]

    yield start_one
    for member in started:
        member.kill()
