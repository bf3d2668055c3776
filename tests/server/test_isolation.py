"""A broker that hears neither ZooKeeper nor other brokers serves no clients."""

from collections.abc import Callable
from typing import Any

import pytest

from odradek.host.zookeeper import SessionEvent
from odradek.server.isolation import Isolation
from tests.server.manual_clock import ManualClock

TIMEOUT_MS = 4000.0


class Session:
    def subscribe(self, listener: Callable[[SessionEvent], None]) -> None:
        self.report = listener


class Story:
    def __init__(self, brokers: int = 3) -> None:
        self.clock = ManualClock()
        self.contact_ms = self.clock.monotonic_ms()
        self.changes: list[bool] = []
        session: Any = Session()
        self.isolation = Isolation(session, self.clock, TIMEOUT_MS, lambda: brokers, self.contact)
        self.isolation.start(lambda: self.contact_ms, self.changes.append)
        self.report = session.report

    def contact(self) -> None:
        """The others do not answer."""

    def hear(self) -> None:
        self.contact_ms = self.clock.monotonic_ms()


def test_a_broker_without_zookeeper_and_without_others_is_isolated_until_it_is_back() -> None:
    story = Story()
    story.report(SessionEvent.DISCONNECTED)
    story.clock.advance(TIMEOUT_MS)
    assert story.changes == []
    story.report(SessionEvent.EXPIRED)  # does not begin the time again
    story.clock.advance(300)
    assert story.changes == [True]
    story.report(SessionEvent.CONNECTED)
    assert story.changes == [True, False]


def test_another_broker_ends_the_isolation() -> None:
    story = Story()
    story.report(SessionEvent.DISCONNECTED)
    story.clock.advance(TIMEOUT_MS + 300)
    story.hear()
    story.clock.advance(300)
    assert story.changes == [True, False]


def test_a_broker_that_hears_others_serves_without_zookeeper() -> None:
    story = Story()
    story.report(SessionEvent.DISCONNECTED)
    for _ in range(20):
        story.clock.advance(TIMEOUT_MS / 2)
        story.hear()
    assert story.changes == []


@pytest.mark.parametrize("brokers", [1, 2])
def test_a_cluster_without_a_majority_has_no_isolated_broker(brokers: int) -> None:
    story = Story(brokers)
    story.report(SessionEvent.DISCONNECTED)
    story.clock.advance(10 * TIMEOUT_MS)
    assert story.changes == []


def test_a_broker_that_stops_looks_no_more() -> None:
    story = Story()
    story.report(SessionEvent.DISCONNECTED)
    story.isolation.stop()
    story.clock.advance(10 * TIMEOUT_MS)
    assert story.changes == []
