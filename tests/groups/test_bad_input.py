"""What makes no sense is refused with the protocol's own error, and the group does not notice. Apache Kafka says
what is right: every row runs against it, too.
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

import pytest

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.join_group import JoinGroupRequestProtocol
from odradek.testing import broker
from tests.clients.conftest import wire_topic
from tests.clients.wire.connection import Connection
from tests.coordinator.groups.test_consumer_protocol import subscription
from tests.groups.wire_group import ASSIGNMENT, WireGroup

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.jvm.shared_kafka import KafkaAddress

COMMITTED = 7
SHORTEST_SESSION_MS = 6000
LONGEST_METADATA = 4096
STRANGER = "stranger-1"


@pytest.fixture(scope="module")
def odradek() -> Iterator[str]:
    with broker({"group.initial.rebalance.delay.ms": 0}) as running:
        yield running.bootstrap_servers


@pytest.fixture(params=[pytest.param("apache-kafka", marks=[pytest.mark.jvm, pytest.mark.oracle]), "odradek"])
def servers(request: pytest.FixtureRequest) -> str:
    if request.param == "odradek":
        own: str = request.getfixturevalue("odradek")
        return own
    oracle: KafkaAddress = request.getfixturevalue("apache_kafka")
    return oracle.bootstrap_servers


@pytest.fixture
def group(servers: str) -> Iterator[WireGroup]:
    """A stable group of one member that has committed something."""
    with Connection(servers) as connection:
        topic = wire_topic(connection)
    group = WireGroup(servers, topic)
    group.form()
    assert group.commit(COMMITTED) == ErrorCode.NONE
    yield group
    group.close()


def assert_unharmed(group: WireGroup) -> None:
    """Its member is in the same generation, with the same assignment, and its offset is where it was."""
    assert group.heartbeat() == ErrorCode.NONE
    synced = group.sync()
    assert (synced.error_code, synced.assignment) == (ErrorCode.NONE, ASSIGNMENT)
    assert group.committed() == COMMITTED
    assert group.commit(COMMITTED) == ErrorCode.NONE


def protocol(name: str, metadata: bytes = b"") -> list[JoinGroupRequestProtocol]:
    return [JoinGroupRequestProtocol(name=name, metadata=metadata or subscription(["topic"]))]


Bad = tuple["Callable[[WireGroup], int]", ErrorCode]
BAD_REQUESTS: dict[str, Bad] = {
    "heartbeat of a stranger": (lambda g: g.heartbeat(member_id=STRANGER), ErrorCode.UNKNOWN_MEMBER_ID),
    "heartbeat without a member": (lambda g: g.heartbeat(member_id=""), ErrorCode.UNKNOWN_MEMBER_ID),
    "heartbeat of a past generation": (lambda g: g.heartbeat(generation_id=0), ErrorCode.ILLEGAL_GENERATION),
    "heartbeat of a generation to come": (lambda g: g.heartbeat(generation_id=2), ErrorCode.ILLEGAL_GENERATION),
    "heartbeat to no group": (lambda g: g.heartbeat(group_id=""), ErrorCode.INVALID_GROUP_ID),
    "heartbeat to an unknown group": (lambda g: g.heartbeat(group_id="unknown"), ErrorCode.UNKNOWN_MEMBER_ID),
    "heartbeat of an unknown instance": (
        lambda g: g.heartbeat(group_instance_id="unknown"),
        ErrorCode.UNKNOWN_MEMBER_ID,
    ),
    "join of a stranger": (lambda g: g.join(member_id=STRANGER).error_code, ErrorCode.UNKNOWN_MEMBER_ID),
    "join of no group": (lambda g: g.join(group_id="").error_code, ErrorCode.INVALID_GROUP_ID),
    "join with another type": (
        lambda g: g.join(protocol_type="connect").error_code,
        ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
    ),
    "join with another assignor": (
        lambda g: g.join(protocols=protocol("private")).error_code,
        ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
    ),
    "join without an assignor": (lambda g: g.join(protocols=[]).error_code, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
    "join without a type": (lambda g: g.join(protocol_type="").error_code, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
    "join with a session too short": (
        lambda g: g.join(session_timeout_ms=SHORTEST_SESSION_MS - 1).error_code,
        ErrorCode.INVALID_SESSION_TIMEOUT,
    ),
    "join with an endless session": (
        lambda g: g.join(session_timeout_ms=2**31 - 1).error_code,
        ErrorCode.INVALID_SESSION_TIMEOUT,
    ),
    "sync of a stranger": (lambda g: g.sync(member_id=STRANGER).error_code, ErrorCode.UNKNOWN_MEMBER_ID),
    "sync of a past generation": (lambda g: g.sync(generation_id=0).error_code, ErrorCode.ILLEGAL_GENERATION),
    "sync of no group": (lambda g: g.sync(group_id="").error_code, ErrorCode.INVALID_GROUP_ID),
    "sync with another type": (
        lambda g: g.sync(protocol_type="connect").error_code,
        ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
    ),
    "sync with another assignor": (
        lambda g: g.sync(protocol_name="roundrobin").error_code,
        ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
    ),
    "late assignment of a stranger": (
        lambda g: g.sync(member_id=STRANGER, assignments={STRANGER: b"all"}).error_code,
        ErrorCode.UNKNOWN_MEMBER_ID,
    ),
    "leave of a stranger": (lambda g: g.leave(member_id=STRANGER), ErrorCode.UNKNOWN_MEMBER_ID),
    "leave of an unknown instance": (
        lambda g: g.leave(member_id="", group_instance_id="unknown"),
        ErrorCode.UNKNOWN_MEMBER_ID,
    ),
    "leave of no group": (lambda g: g.leave(group_id="", member_id=STRANGER), ErrorCode.INVALID_GROUP_ID),
    "commit of a stranger": (lambda g: g.commit(1, member_id=STRANGER), ErrorCode.UNKNOWN_MEMBER_ID),
    "commit without a member": (
        lambda g: g.commit(1, member_id="", generation_id_or_member_epoch=-1),
        ErrorCode.UNKNOWN_MEMBER_ID,
    ),
    "commit of a past generation": (
        lambda g: g.commit(1, generation_id_or_member_epoch=0),
        ErrorCode.ILLEGAL_GENERATION,
    ),
    "commit of a generation to come": (
        lambda g: g.commit(1, generation_id_or_member_epoch=2),
        ErrorCode.ILLEGAL_GENERATION,
    ),
    "commit with a long note": (
        lambda g: g.commit(1, metadata="x" * (LONGEST_METADATA + 1)),
        ErrorCode.OFFSET_METADATA_TOO_LARGE,
    ),
    "commit with the longest string that there is": (
        lambda g: g.commit(1, metadata="x" * 32767),
        ErrorCode.OFFSET_METADATA_TOO_LARGE,
    ),
    "commit of a missing topic": (lambda g: g.commit(1, topic="missing"), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    "commit of an illegal topic": (lambda g: g.commit(1, topic="no such!"), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    "commit of a missing partition": (lambda g: g.commit(1, partition=9), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    "newer heartbeat in a past epoch": (
        lambda g: g.consumer_heartbeat(member_id=STRANGER, member_epoch=3).error_code,
        ErrorCode.GROUP_ID_NOT_FOUND,
    ),
}


@pytest.mark.parametrize("name", BAD_REQUESTS)
def test_a_bad_request_is_refused_and_the_group_unharmed(group: WireGroup, name: str) -> None:
    request, error = BAD_REQUESTS[name]
    assert request(group) == error
    assert_unharmed(group)


def test_the_longest_note_is_taken(group: WireGroup) -> None:
    assert group.commit(COMMITTED, metadata="x" * LONGEST_METADATA) == ErrorCode.NONE
    assert_unharmed(group)


@pytest.mark.parametrize("garbage", [b"", b"\xff" * 20, b"\0\0\x7f\xff\xff\xff", bytes(1000)], ids=repr)
@pytest.mark.parametrize("servers", ["odradek"], indirect=True)
def test_what_clients_say_to_each_other_is_passed_on_as_it_is(group: WireGroup, garbage: bytes) -> None:
    """A subscription and an assignment belong to the clients: the broker hands on what it cannot read. Apache Kafka
    stumbles over some of it (UNKNOWN_SERVER_ERROR)."""
    first = group.join(member_id=group.member_id, protocols=protocol("range", garbage))
    assert first.error_code == ErrorCode.NONE
    assert [each.metadata for each in first.members] == [garbage or subscription(["topic"])]
    group.generation = first.generation_id
    assert group.sync(assignments={group.member_id: garbage}).assignment == garbage
    assert group.heartbeat() == ErrorCode.NONE
    assert group.committed() == COMMITTED


NEW_MEMBER: dict[str, Any] = {
    "member_epoch": 0,
    "rebalance_timeout_ms": 60_000,
    "subscribed_topic_names": [],
    "topic_partitions": [],
}
BAD_HEARTBEATS: dict[str, tuple[dict[str, Any], ErrorCode]] = {
    "to no group": ({**NEW_MEMBER, "group_id": ""}, ErrorCode.INVALID_REQUEST),
    "without a member": ({**NEW_MEMBER, "member_id": ""}, ErrorCode.INVALID_REQUEST),
    "of a stranger": ({"member_id": STRANGER, "member_epoch": 1}, ErrorCode.UNKNOWN_MEMBER_ID),
    "that leaves as a stranger": ({"member_id": STRANGER, "member_epoch": -1}, ErrorCode.UNKNOWN_MEMBER_ID),
    "of an epoch to come": ({"member_epoch": 99}, ErrorCode.FENCED_MEMBER_EPOCH),
    "of an impossible epoch": ({"member_epoch": -3}, ErrorCode.INVALID_REQUEST),
    "without a rebalance timeout": ({**NEW_MEMBER, "rebalance_timeout_ms": -1}, ErrorCode.INVALID_REQUEST),
    "without a subscription": ({**NEW_MEMBER, "subscribed_topic_names": None}, ErrorCode.INVALID_REQUEST),
    "that already owns something": ({**NEW_MEMBER, "topic_partitions": None}, ErrorCode.INVALID_REQUEST),
    "with an unknown assignor": ({**NEW_MEMBER, "server_assignor": "private"}, ErrorCode.UNSUPPORTED_ASSIGNOR),
    "with half a pattern": ({**NEW_MEMBER, "subscribed_topic_regex": "[a-"}, ErrorCode.INVALID_REGULAR_EXPRESSION),
    "of an instance without a name": ({**NEW_MEMBER, "instance_id": ""}, ErrorCode.INVALID_REQUEST),
}


@pytest.mark.parametrize("name", BAD_HEARTBEATS)
def test_a_bad_heartbeat_of_the_newer_protocol_is_refused_and_the_group_unharmed(servers: str, name: str) -> None:
    group = WireGroup(servers, "topic")
    group.find_coordinator()
    member_id = str(uuid.uuid4())
    joined = group.consumer_heartbeat(member_id=member_id, **NEW_MEMBER)
    assert joined.error_code == ErrorCode.NONE
    bad, error = BAD_HEARTBEATS[name]
    new_member_id = str(uuid.uuid4()) if bad.get("member_epoch") == 0 else member_id
    assert group.consumer_heartbeat(**{"member_id": new_member_id, **bad}).error_code == error
    after = group.consumer_heartbeat(member_id=member_id, member_epoch=joined.member_epoch)
    assert (after.error_code, after.member_epoch) == (ErrorCode.NONE, joined.member_epoch)
    group.close()
