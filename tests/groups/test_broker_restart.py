"""The broker ends and comes back in the middle of a rebalance: the group recovers by itself within seconds.

The clients bound the time: how long they wait before they connect again (each client's default, except for franz-go,
see its member), and the interval of their heartbeats, by which a member learns that the others join again: one round
with the eager assignors, two with the cooperative ones. That is at most five seconds on an idle machine (`make soak`
checks it); a group that waited for the end of a session would take twenty.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any

import pytest

from odradek.testing import RunningBroker, broker
from tests.groups.conftest import QUICK
from tests.groups.kinds import EACH_CLIENT, Kind, parameters
from tests.groups.members.member_settings import CALM_SESSION_MS
from tests.groups.processed import Processed
from tests.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.groups.conftest import Start
    from tests.groups.topics import Topics

pytestmark = pytest.mark.timeout(300)

RECOVERY_S = float(os.environ.get("GROUP_RECOVERY_S", "15"))  # beside other tests; less than a session
PARTITION_COUNT = 6
IN_EVERY_RUN = ["confluent-classic-cooperative-sticky"]
IN_MORE = ["aiokafka-classic-range", "java-consumer-uniform"]
HEARTBEAT_MS = 1000  # with the default of 3 s, two rounds alone may take longer than what is asked for


@pytest.fixture
def running() -> Iterator[RunningBroker]:
    unhurried = {
        "group.consumer.session.timeout.ms": CALM_SESSION_MS,
        "group.consumer.heartbeat.interval.ms": HEARTBEAT_MS,
    }
    with broker({**QUICK, **unhurried}) as running:
        yield running


@pytest.mark.parametrize("way", [pytest.param("SIGTERM", marks=pytest.mark.soak), "SIGKILL"])
@pytest.mark.parametrize("kind", parameters(EACH_CLIENT, IN_EVERY_RUN, IN_MORE))
def test_a_group_recovers_when_the_broker_ends_in_the_middle_of_a_rebalance(
    running: RunningBroker,
    topics: Topics,
    start: Start,
    kind: Kind,
    way: str,
    record_property: Any,
) -> None:
    topics.make(topic=PARTITION_COUNT)
    settings = {"heartbeat_ms": HEARTBEAT_MS, **kind.settings}
    members = [start(kind.library, name, "topic", **settings) for name in ("c1", "c2")]
    eventually(lambda: [len(each.held) for each in members] == [3, 3], "three partitions each")
    topics.produce(100)
    topics.flush()
    eventually(lambda: topics.committed() == topics.ends, "all committed")
    members[1].stop()  # so that the rebalance cannot end
    members.append(start(kind.library, "c3", "topic", **settings))
    eventually(lambda: topics.group_state() != "STABLE", "a rebalance")
    if way == "SIGKILL":
        running.kill()
    else:
        running.stop()
    members[1].go_on()
    running.start()
    began_s = time.monotonic()
    eventually(
        lambda: [len(each.held) for each in members] == [2, 2, 2],
        lambda: (topics.group_state(), [(each, each.held, each.errors[-1000:]) for each in members]),
    )
    took_s = time.monotonic() - began_s
    record_property("recovery_s", round(took_s, 2))
    print(f"{kind.library} {kind.assignor} {way}: all shared {took_s:.2f} s after the broker's return")
    assert took_s < RECOVERY_S
    assert set().union(*(each.held for each in members)) == set(topics.ends)
    topics.produce(100)
    topics.flush()
    eventually(lambda: topics.committed() == topics.ends, "all committed after the restart")
    for member in members:
        member.leave()
    assert not Processed(members).skipped(topics.ends)
