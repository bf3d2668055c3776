"""Members with strange settings among ordinary members: topics that are not there, names that cannot be, and bytes
that no client understands. The group goes on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.join_group import JoinGroupRequestProtocol
from tests.coordinator.groups.test_consumer_protocol import subscription
from tests.groups.processed import Processed
from tests.groups.wire_group import WireGroup
from tests.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import Iterator

    from odradek.testing import RunningBroker
    from tests.groups.conftest import Start
    from tests.groups.topics import Topics

CLASSIC_AND_CONSUMER = [("classic", "range"), ("consumer", "uniform")]
OFTEN_FRESH = (("topic.metadata.refresh.interval.ms", "200"),)
GARBAGE = b"\xff" * 20


@pytest.fixture
def liar(running: RunningBroker) -> Iterator[WireGroup]:
    """A member by hand of the group that the others are in."""
    liar = WireGroup(running.bootstrap_servers, "topic")
    liar.group_id = "group"
    yield liar
    liar.close()


def everything_is_processed(topics: Topics) -> None:
    topics.produce(50)
    topics.flush()
    eventually(lambda: topics.committed() == topics.ends, "everything committed")


@pytest.mark.parametrize(("protocol", "assignor"), CLASSIC_AND_CONSUMER)
def test_a_missing_topic_does_not_affect_others_and_is_read_when_it_exists(
    topics: Topics, start: Start, protocol: str, assignor: str
) -> None:
    topics.make(topic=2)
    settings = {"protocol": protocol, "assignor": assignor, "client": OFTEN_FRESH}
    members = [start("confluent", name, "topic", "later", **settings) for name in ("c1", "c2")]
    eventually(lambda: sorted(len(each.held) for each in members) == [1, 1], "what there is is shared")
    everything_is_processed(topics)
    topics.make(later=2)
    eventually(lambda: set().union(*(each.held for each in members)) == set(topics.ends), "the new topic is shared")
    everything_is_processed(topics)
    for member in members:
        member.leave()
    assert not Processed(members).skipped(topics.ends)


@pytest.mark.parametrize(("protocol", "assignor"), CLASSIC_AND_CONSUMER)
def test_an_invalid_topic_name_does_not_affect_other_members(
    topics: Topics, start: Start, protocol: str, assignor: str
) -> None:
    """librdkafka's classic consumer never joins with such a name, on Apache Kafka neither; its newer one does."""
    topics.make(topic=2)
    good = start("confluent", "c1", "topic", protocol=protocol, assignor=assignor)
    strange = start("confluent", "c2", "topic", "no such name!", protocol=protocol, assignor=assignor)
    eventually(lambda: strange.reports.has_started and len(good.held | strange.held) == 2, "both partitions held")
    everything_is_processed(topics)
    strange.leave()
    good.leave()


def test_a_member_whose_subscription_is_garbage_has_no_effect_once_it_is_gone(
    topics: Topics, start: Start, liar: WireGroup
) -> None:
    topics.make(topic=2)
    good = start("confluent", "c1", "topic")
    eventually(lambda: len(good.held) == 2, "both partitions")
    everything_is_processed(topics)
    garbage = [JoinGroupRequestProtocol(name="range", metadata=GARBAGE)]
    first = liar.join(protocols=garbage)
    assert first.error_code == ErrorCode.MEMBER_ID_REQUIRED
    joined = liar.join(member_id=first.member_id, protocols=garbage)
    assert joined.error_code == ErrorCode.NONE
    liar.member_id = joined.member_id
    assert liar.leave() == ErrorCode.NONE
    eventually(lambda: len(good.held) == 2, "both partitions again")
    everything_is_processed(topics)
    good.leave()


def test_a_leader_that_assigns_garbage_has_no_effect_once_it_is_gone(
    topics: Topics, start: Start, liar: WireGroup
) -> None:
    topics.make(topic=2)
    liar.form()
    good = start("confluent", "c1", "topic")
    eventually(lambda: liar.heartbeat() == ErrorCode.REBALANCE_IN_PROGRESS, "the other joins")
    joined = liar.join(member_id=liar.member_id)
    assert (joined.leader, len(joined.members)) == (liar.member_id, 2)
    liar.generation = joined.generation_id
    synced = liar.sync(assignments={each.member_id: GARBAGE for each in joined.members})
    assert (synced.error_code, synced.assignment) == (ErrorCode.NONE, GARBAGE)
    assert liar.leave() == ErrorCode.NONE
    eventually(lambda: len(good.held) == 2, "both partitions")
    everything_is_processed(topics)
    good.leave()


@pytest.mark.parametrize("first", [subscription(["topic"]), GARBAGE], ids=["second", "both"])
def test_a_mixed_group_refuses_a_member_whose_subscription_it_cannot_decode(
    topics: Topics, start: Start, liar: WireGroup, first: bytes
) -> None:
    """It may become a classic group, of any protocol that its members have in common, when a member leaves."""
    topics.make(topic=2)
    newer = start("confluent", "c1", "topic", protocol="consumer", assignor="uniform")
    eventually(lambda: len(newer.held) == 2, "both partitions")
    lies = [
        JoinGroupRequestProtocol(name="range", metadata=first),
        JoinGroupRequestProtocol(name="roundrobin", metadata=b""),
    ]
    asked = liar.join(protocols=lies)
    assert asked.error_code == ErrorCode.MEMBER_ID_REQUIRED
    assert liar.join(member_id=asked.member_id, protocols=lies).error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    good = start("confluent", "c2", "topic", assignor="roundrobin")
    eventually(lambda: [len(each.held) for each in (newer, good)] == [1, 1], "one partition each")
    everything_is_processed(topics)
    newer.leave()
    eventually(lambda: len(good.held) == 2, "both partitions in a classic group")
    everything_is_processed(topics)
    good.leave()
