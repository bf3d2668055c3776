"""The records of newer consumer groups: the bytes below were read and written again by Apache Kafka 4.3.1, and are each
time a JVM is at hand."""

import contextlib
from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from odradek.coordinator.groups.consumer.records import (
    ClassicMemberMetadata,
    ClassicProtocol,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataValue,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataValue,
    TopicPartitions,
    consumer_group_record,
    current_assignment_record,
    member_record,
    partitions_with_epochs,
    regular_expression_record,
    target_assignment_member_record,
    target_assignment_record,
    target_partitions,
    tombstone,
)
from odradek.coordinator.groups.group_records import (
    ConsumerGroupKey,
    ConsumerGroupMemberKey,
    ConsumerGroupPartitionsKey,
    CurrentAssignmentKey,
    NewerKey,
    RegularExpressionKey,
    TargetAssignmentKey,
    TargetAssignmentMemberKey,
    decode_key,
    decode_value,
    encode_key,
    encode_value,
)
from odradek.coordinator.runtime.coordinator_record import CoordinatorRecord
from odradek.protocol.malformed import MalformedMessage
from odradek.protocol.schema import Message, Struct, array, int32, string, uuid
from tests.example_counts import examples
from tests.jvm.kafka_messages import MessageSession, as_kafka_json
from tests.protocol.tables import structs

TOPIC = UUID("01234567-89ab-cdef-0fed-cba987654321")
OTHER = UUID(int=7)


class PartitionMetadata(Struct):
    partition: int = int32()
    racks: list[str] = array(string())


class TopicMetadata(Struct):
    topic_id: UUID = uuid()
    topic_name: str = string()
    num_partitions: int = int32()
    partition_metadata: list[PartitionMetadata] = array(PartitionMetadata)


class ConsumerGroupPartitionMetadataValue(Message, flexible=0):
    """The broker does not use this record, but must know its key."""

    topics: list[TopicMetadata] = array(TopicMetadata)


# Keys of one group and one member are equal tuples whatever their kind, so this is no dictionary.
KINDS: list[tuple[int, NewerKey, type[Message]]] = [
    (3, ConsumerGroupKey("gruppe-ü"), ConsumerGroupMetadataValue),
    (4, ConsumerGroupPartitionsKey("g"), ConsumerGroupPartitionMetadataValue),
    (5, ConsumerGroupMemberKey("g", "m"), ConsumerGroupMemberMetadataValue),
    (6, TargetAssignmentKey("g"), ConsumerGroupTargetAssignmentMetadataValue),
    (7, TargetAssignmentMemberKey("g", "m"), ConsumerGroupTargetAssignmentMemberValue),
    (8, CurrentAssignmentKey("g", "m"), ConsumerGroupCurrentMemberAssignmentValue),
    (16, RegularExpressionKey("g", "a.*"), ConsumerGroupRegularExpressionValue),
]
NAMES = [type(key).__name__ for _, key, _ in KINDS]
FEW = settings(max_examples=examples(20), deadline=None, suppress_health_check=[HealthCheck.too_slow])

RECORDS = {
    "group": (consumer_group_record("g", 5, -2), "0003000167", "000000000005010008fffffffffffffffe"),
    "group without a hash": (consumer_group_record("g", 5, 0), "0003000167", "00000000000500"),
    "member": (
        member_record(
            "g",
            "m",
            ConsumerGroupMemberMetadataValue(
                instance_id="i",
                rack_id="r",
                client_id="c",
                client_host="/127.0.0.1",
                subscribed_topic_names=["a", "b"],
                subscribed_topic_regex="a.*",
                rebalance_timeout_ms=300_000,
                server_assignor="range",
                classic_member_metadata=None,
            ),
        ),
        "000500016700016d",
        "00000269027202630b2f3132372e302e302e31030261026204612e2a000493e00672616e676501000100",
    ),
    "member that speaks the classic protocol": (
        member_record(
            "g",
            "m",
            ConsumerGroupMemberMetadataValue(
                client_id="c",
                client_host="h",
                classic_member_metadata=ClassicMemberMetadata(
                    session_timeout_ms=45_000, supported_protocols=[ClassicProtocol(name="range", metadata=b"\0\1")]
                ),
            ),
        ),
        "000500016700016d",
        "00000000026302680100ffffffff00010011010000afc8020672616e67650300010000",
    ),
    "target assignment": (
        target_assignment_record("g", 5, 1_700_000_000_000),
        "0006000167",
        "0000000000050100080000018bcfe56800",
    ),
    "target assignment of a member": (
        target_assignment_member_record("g", "m", {TOPIC: {2, 0, 1}}),
        "000700016700016d",
        "0000020123456789abcdef0fedcba987654321040000000000000001000000020000",
    ),
    "current assignment": (
        current_assignment_record(
            "g",
            "m",
            member_epoch=5,
            previous_member_epoch=4,
            state=1,
            assigned={TOPIC: {1: 3, 0: 5}},
            pending_revocation={TOPIC: {2: 4}},
        ),
        "000800016700016d",
        (
            "0000000000050000000401020123456789abcdef0fedcba987654321030000000000000001010009030000000500000003"
            "020123456789abcdef0fedcba9876543210200000002010005020000000400"
        ),
    ),
    "regular expression": (
        regular_expression_record("g", "a.*", {"ab", "a"}, 12, 1_700_000_000_000),
        "00100001670003612e2a",
        "0000030261036162000000000000000c0000018bcfe5680000",
    ),
}


@pytest.fixture(scope="module")
def kafka(jvm: None) -> Iterator[MessageSession]:
    with MessageSession() as session:
        yield session


@pytest.mark.parametrize(("record", "key_hex", "value_hex"), RECORDS.values(), ids=RECORDS)
def test_a_record_has_kafkas_bytes(record: CoordinatorRecord, key_hex: str, value_hex: str) -> None:
    assert record == CoordinatorRecord(bytes.fromhex(key_hex), bytes.fromhex(value_hex))


@pytest.mark.more
@pytest.mark.jvm
@pytest.mark.timeout(600)
@pytest.mark.parametrize(("record", "key_hex", "value_hex"), RECORDS.values(), ids=RECORDS)
def test_kafka_reads_and_writes_these_bytes(
    kafka: MessageSession, record: CoordinatorRecord, key_hex: str, value_hex: str
) -> None:
    kafka.check_record(CoordinatorRecord(bytes.fromhex(key_hex), bytes.fromhex(value_hex)))


@pytest.mark.more
@pytest.mark.jvm
@pytest.mark.timeout(600)
@pytest.mark.parametrize(("number", "key", "message"), KINDS, ids=NAMES)
@FEW
@given(data=st.data())
def test_kafka_finds_the_same_values_in_any_record(
    kafka: MessageSession, number: int, key: NewerKey, message: type[Message], data: st.DataObject
) -> None:
    value = data.draw(structs(message, 0))
    kind, their_key, their_value = kafka.check_record(CoordinatorRecord(encode_key(key), encode_value(value, 0)))
    assert kind == number
    assert list(their_key.values()) == list(key)
    assert their_value == as_kafka_json(value, 0)


@pytest.mark.more
@pytest.mark.jvm
@pytest.mark.timeout(600)
@pytest.mark.parametrize(("number", "key"), [kind[:2] for kind in KINDS], ids=NAMES)
def test_kafka_reads_the_tombstone(kafka: MessageSession, number: int, key: NewerKey) -> None:
    kind, their_key, their_value = kafka.check_record(tombstone(key))
    assert (kind, list(their_key.values()), their_value) == (number, list(key), None)


@pytest.mark.parametrize("key_type", [type(key) for _, key, _ in KINDS], ids=NAMES)
@given(data=st.data())
def test_a_key_comes_back_from_its_bytes(key_type: type[NewerKey], data: st.DataObject) -> None:
    names: list[Any] = [data.draw(st.text(max_size=20)) for _ in key_type._fields]
    key = key_type(*names)
    decoded = decode_key(encode_key(key))
    assert decoded == key
    assert type(decoded) is key_type
    assert tombstone(key) == CoordinatorRecord(encode_key(key), None)


@pytest.mark.parametrize("message", [message for *_, message in KINDS], ids=NAMES)
@FEW
@given(data=st.data())
def test_a_value_comes_back_from_its_bytes(message: type[Message], data: st.DataObject) -> None:
    value = data.draw(structs(message, 0))
    assert decode_value(message, encode_value(value, 0)) == value


ASSIGNMENTS = st.dictionaries(
    st.uuids(), st.dictionaries(st.integers(0, 99), st.integers(0, 99), max_size=5), max_size=3
)


@given(assigned=ASSIGNMENTS, pending=ASSIGNMENTS)
def test_partitions_come_back_from_their_records(
    assigned: dict[UUID, dict[int, int]], pending: dict[UUID, dict[int, int]]
) -> None:
    current = current_assignment_record(
        "g", "m", member_epoch=100, previous_member_epoch=99, state=2, assigned=assigned, pending_revocation=pending
    )
    assert current.value is not None
    value = decode_value(ConsumerGroupCurrentMemberAssignmentValue, current.value)
    assert (value.member_epoch, value.previous_member_epoch, value.state) == (100, 99, 2)
    assert partitions_with_epochs(value.assigned_partitions, 100) == assigned
    assert partitions_with_epochs(value.partitions_pending_revocation, 100) == pending
    target = target_assignment_member_record("g", "m", assigned)
    assert target.value is not None
    found = target_partitions(decode_value(ConsumerGroupTargetAssignmentMemberValue, target.value))
    assert found == {topic: frozenset(partitions) for topic, partitions in assigned.items()}


@pytest.mark.parametrize(("member_epoch", "expected"), [(4, 4), (-2, 0)])
def test_a_partition_without_an_epoch_has_its_members(member_epoch: int, expected: int) -> None:
    topics = [
        TopicPartitions(topic_id=TOPIC, partitions=[0, 1]),
        TopicPartitions(topic_id=OTHER, partitions=[5], assignment_epochs=[1, 2]),
    ]
    assert partitions_with_epochs(topics, member_epoch) == {TOPIC: {0: expected, 1: expected}, OTHER: {5: expected}}


@given(st.sampled_from(KINDS), st.binary(max_size=60))
def test_nonsense_is_malformed_and_nothing_else(kind: tuple[int, NewerKey, type[Message]], data: bytes) -> None:
    number, _, message = kind
    with contextlib.suppress(MalformedMessage):
        decode_value(message, data)
    with contextlib.suppress(MalformedMessage):
        decode_value(message, b"\0\0" + data)
    with contextlib.suppress(MalformedMessage):
        decode_key(number.to_bytes(2, "big") + data)
    with pytest.raises(MalformedMessage, match="has no version 1"):
        decode_value(message, b"\0\1" + data)
