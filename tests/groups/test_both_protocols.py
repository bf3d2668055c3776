"""Both protocols in one group: an upgrade member by member, and the way back. And patterns, in each of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.groups.kinds import INCREMENTAL, Kind, parameters
from tests.groups.members.member_settings import CLASSIC, CONSUMER
from tests.groups.processed import Processed
from tests.waiting import eventually

if TYPE_CHECKING:
    from tests.groups.conftest import Start
    from tests.groups.topics import Topics

pytestmark = pytest.mark.timeout(300)

OFTEN_FRESH = (("topic.metadata.refresh.interval.ms", "200"),)
CLASSIC_KINDS = [kind for kind in INCREMENTAL if kind.protocol == CLASSIC]
NEWER = {kind.library: kind for kind in INCREMENTAL if kind.protocol == CONSUMER}


@pytest.mark.parametrize(
    "kind", parameters(CLASSIC_KINDS, ["confluent-classic-cooperative-sticky"], map(str, CLASSIC_KINDS))
)
def test_a_running_group_is_upgraded_member_by_member_and_back(topics: Topics, start: Start, kind: Kind) -> None:
    topics.make(topic=4)
    newer = NEWER.get(kind.library, NEWER["confluent"])
    old = start(kind.library, "c1", "topic", **kind.settings)
    eventually(lambda: len(old.held) == 4, "all partitions")
    new = start(newer.library, "c2", "topic", **newer.settings)
    eventually(lambda: len(old.held) == len(new.held) == 2, "two partitions each, in two protocols")
    topics.produce(100)
    topics.flush()
    eventually(lambda: topics.committed() == topics.ends, "all committed")
    new.leave()
    eventually(lambda: len(old.held) == 4, "all partitions, classic again")
    topics.produce(100)
    topics.flush()
    eventually(lambda: topics.committed() == topics.ends, "all committed")
    old.leave()
    assert not Processed([old, new]).skipped(topics.ends)


@pytest.mark.parametrize(("protocol", "assignor"), [(CLASSIC, "range"), (CONSUMER, "uniform")])
def test_a_pattern_finds_the_topics_that_are_there_and_those_that_come(
    topics: Topics, start: Start, protocol: str, assignor: str
) -> None:
    topics.make(orders=1, people=1)
    member = start("confluent", "c1", "^orders.*", protocol=protocol, assignor=assignor, client=OFTEN_FRESH)
    eventually(lambda: member.held == {("orders", 0)}, "the one that matches")
    topics.make(**{"orders-later": 2})
    eventually(lambda: member.held == {("orders", 0), ("orders-later", 0), ("orders-later", 1)}, "the new one too")
    member.leave()
