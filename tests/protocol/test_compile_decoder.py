"""Declared lengths are checked before anything is allocated, and unknown tagged fields are skipped."""

import contextlib
from typing import Any
from uuid import UUID, uuid4

import pytest

from odradek.protocol.compile_decoder import REMEMBERED_UUIDS, smallest_size_bytes
from odradek.protocol.malformed import MalformedMessage
from odradek.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest
from odradek.protocol.messages.alter_partition_reassignments import AlterPartitionReassignmentsRequest
from odradek.protocol.messages.delete_topics import DeleteTopicsRequest
from odradek.protocol.messages.describe_producers import DescribeProducersRequest
from odradek.protocol.messages.describe_topic_partitions import DescribeTopicPartitionsRequest
from odradek.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from odradek.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponsePartition
from odradek.protocol.messages.offset_fetch import OffsetFetchRequest
from odradek.protocol.messages.produce import ProduceRequest
from odradek.protocol.messages.write_txn_markers import WriteTxnMarkersRequest
from odradek.protocol.schema import Message, Request, Response, Struct, array, int8, int16, int32, string, struct
from tests.memory import memory_of
from tests.protocol.tables import join


def decode(message: type[Any], version: int, data: bytes) -> Any:
    return message.decode(memoryview(data), 0, version)


def test_an_array_count_beyond_the_bytes_that_remain_is_refused() -> None:
    with pytest.raises(MalformedMessage, match="topics: 2147483647, 4 bytes left"):
        decode(MetadataRequest, 1, b"\x7f\xff\xff\xff" + bytes(4))
    # A topic takes two bytes at least: three of them do not fit into five.
    with pytest.raises(MalformedMessage, match="topics: 3, 5 bytes left"):
        decode(MetadataRequest, 1, b"\x00\x00\x00\x03" + bytes(5))


def test_a_compact_array_count_beyond_the_bytes_that_remain_is_refused() -> None:
    with pytest.raises(MalformedMessage, match="topics: 268435454, 1 bytes left"):
        decode(MetadataRequest, 9, b"\xff\xff\xff\x7f\x00")


@pytest.mark.parametrize("count", [b"\xff\xff\xff\xfe", b"\xff\xff\xff\xfb", b"\x80\x00\x00\x00"])
def test_an_array_count_below_minus_one_is_refused(count: bytes) -> None:
    with pytest.raises(MalformedMessage, match="topics of length -"):
        decode(MetadataRequest, 1, count + bytes(50))


def test_null_is_refused_where_the_version_does_not_allow_it() -> None:
    assert decode(MetadataRequest, 1, b"\xff\xff\xff\xff").topics is None
    with pytest.raises(MalformedMessage, match="topics of length -1"):
        decode(MetadataRequest, 0, b"\xff\xff\xff\xff")
    with pytest.raises(MalformedMessage, match="name of length -1"):
        decode(MetadataRequest, 9, b"\x02\x00\x00\x00\x00\x00\x00")


@pytest.mark.parametrize("length", [b"\xff\xfe", b"\x80\x00", b"\x00\x06", b"\x7f\xff"])
def test_a_string_shorter_or_longer_than_it_may_be_is_refused(length: bytes) -> None:
    with pytest.raises(MalformedMessage):
        decode(ProduceRequest, 3, length + b"abcde")


def test_a_compact_string_is_no_longer_than_another_string_may_be() -> None:
    """Kafka's generated classes refuse it as well."""
    longest = "t" * 32_767
    encoded = join(MetadataRequest(topics=[MetadataRequestTopic(name=longest)]), 9)
    assert decode(MetadataRequest, 9, encoded).topics[0].name == longest
    encoded = join(MetadataRequest(topics=[MetadataRequestTopic(name=longest + "t")]), 9)
    with pytest.raises(MalformedMessage, match="name of 32768 bytes is longer than 32767"):
        decode(MetadataRequest, 9, encoded)


def test_a_string_that_is_not_utf_8_is_refused() -> None:
    with pytest.raises(MalformedMessage, match="not UTF-8"):
        decode(MetadataRequest, 0, b"\x00\x00\x00\x01\x00\x02\xc3\x28")


@pytest.mark.parametrize("varint", [b"\xff" * 5, b"\x80" * 6, b"\xff\xff\xff\xff\x1f", b"\xff\xff", b"\x80"])
def test_a_varint_that_is_too_long_or_cut_off_is_refused(varint: bytes) -> None:
    with pytest.raises(MalformedMessage, match="varint"):
        decode(MetadataRequest, 9, varint)


def test_records_are_a_view_into_the_frame() -> None:
    frame = bytearray(b"\x00\xff\xff\x00\x00\x00\x1e\x02\x02t\x02\x00\x00\x00\x07\x05data\x00\x00\x00")
    request = ProduceRequest.decode(memoryview(frame), 0, 9)
    records = request.topic_data[0].partition_data[0].records
    assert isinstance(records, memoryview)
    assert records.obj is frame
    records[0] = ord("D")
    assert b"Data" in frame


def test_records_longer_than_the_frame_are_refused() -> None:
    with pytest.raises(MalformedMessage, match="records of 2147483646 bytes, 7 left"):
        decode(
            ProduceRequest,
            9,
            b"\x00\xff\xff\x00\x00\x00\x1e\x02\x02t\x02\x00\x00\x00\x07\xff\xff\xff\xff\x07data\x00\x00\x00",
        )


def test_unknown_tagged_fields_are_passed_over() -> None:
    partition = join(FetchRequest(topics=[FetchTopic(partitions=[FetchPartition(partition=5)])]), 17)
    position = partition.index(b"\x00\x00\x00\x05")
    # The tag section of the partition comes 32 bytes after its number: one unknown field of three bytes goes there.
    assert partition[position + 32] == 0
    tagged = partition[: position + 32] + b"\x01\x63\x03abc" + partition[position + 33 :]
    assert decode(FetchRequest, 17, tagged) == decode(FetchRequest, 17, partition)
    assert decode(DeleteTopicsRequest, 6, b"\x01\x00\x00\x00\x00\x02\x07\x01x\x88\x01\x00").topics == []


@pytest.mark.parametrize(
    "tags", [b"\x01", b"\x01\x05", b"\x01\x05\x02a", b"\x7f\x05\x01a", b"\xff\xff\xff\xff\x0f\x00\x00"]
)
def test_tagged_fields_that_are_cut_off_are_refused(tags: bytes) -> None:
    with pytest.raises(MalformedMessage):
        decode(DeleteTopicsRequest, 6, b"\x01\x00\x00\x00\x00" + tags)


def test_a_known_tagged_field_must_have_the_size_it_declares() -> None:
    class Tagged(Request, api_key=99, versions=(0, 0), flexible=0):
        number: int = int32(tag=2, tagged="0+")
        other: str = string(tag=5, tagged="0+")

    assert decode(Tagged, 0, b"\x01\x02\x04\x00\x00\x00\x07").number == 7
    assert decode(Tagged, 0, b"\x02\x02\x04\x00\x00\x00\x07\x05\x03\x03ab") == Tagged(number=7, other="ab")
    for size in (0, 3, 5, 127):
        with pytest.raises(MalformedMessage):
            decode(Tagged, 0, b"\x01\x02" + bytes([size]) + b"\x00\x00\x00\x07\x00")


def test_a_nullable_struct_has_a_presence_byte() -> None:
    assert decode(DescribeTopicPartitionsRequest, 0, b"\x01\x00\x00\x00\x01\xff\x00").cursor is None
    cursor = decode(DescribeTopicPartitionsRequest, 0, b"\x01\x00\x00\x00\x01\x01\x02t\x00\x00\x00\x09\x00\x00").cursor
    assert (cursor.topic_name, cursor.partition_index) == ("t", 9)


def test_a_nullable_struct_that_is_tagged_says_null_with_zero() -> None:
    class Inner(Struct):
        number: int = int8()

    class Outer(Message, flexible=0):
        inner: Inner | None = struct(Inner, nullable="0+", tag=0, tagged="0+")

    for value, expected in [
        (Outer(inner=None), b"\x01\x00\x01\x00"),
        (Outer(inner=Inner(number=7)), b"\x01\x00\x03\x01\x07\x00"),
        (Outer(), b"\x00"),
    ]:
        assert join(value, 0) == expected
        assert decode(Outer, 0, expected) == value


def test_fields_that_a_version_lacks_take_their_defaults() -> None:
    encoded = join(FetchRequest(topics=[FetchTopic(partitions=[FetchPartition()])]), 4)
    request = FetchRequest.decode(memoryview(encoded), 0, 4)
    assert request.rack_id == ""
    assert request.forgotten_topics_data == []
    assert request.topics[0].topic_id == UUID(int=0)
    assert request.topics[0].partitions[0].high_watermark == 2**63 - 1


def test_the_smallest_size_of_an_element_counts_what_cannot_be_left_out() -> None:
    # Error, partition, leader, epoch, three empty arrays, no tagged field.
    assert smallest_size_bytes(MetadataResponsePartition, 12, flexible=True) == 2 + 4 + 4 + 4 + 3 + 1
    assert smallest_size_bytes(MetadataResponsePartition, 5, flexible=False) == 2 + 4 + 4 + 3 * 4

    class Empty(Struct):
        later: int = int32(versions="9+")

    class Nested(Struct):
        always: Empty = struct(Empty)
        maybe: Empty | None = struct(Empty, nullable="0+")
        small: int = int16()
        large: int = int32()
        tiny: int = int8(tag=0, tagged="0+")

    assert smallest_size_bytes(Empty, 0, flexible=False) == 1
    assert smallest_size_bytes(Nested, 0, flexible=False) == 1 + 1 + 2 + 4 + 1
    assert smallest_size_bytes(Nested, 0, flexible=True) == 1 + 1 + 2 + 4 + 1


@pytest.mark.parametrize(
    ("message", "version", "declared"),
    [
        (MetadataRequest, 1, b"\x7f\xff\xff\xff"),
        (MetadataRequest, 9, b"\xff\xff\xff\xff\x0f"),
        (ProduceRequest, 3, b"\x7f\xff"),
        (ProduceRequest, 9, b"\xff\xff\xff\xff\x0f"),
        (FetchRequest, 4, b"\x7f\xff\xff\xff"),
    ],
)
def test_a_declared_count_or_size_reserves_nothing(message: type[Any], version: int, declared: bytes) -> None:
    with contextlib.suppress(MalformedMessage):
        decode(message, version, b"")  # compiled before memory is counted

    def refuse() -> None:
        with pytest.raises(MalformedMessage):
            decode(message, version, declared * 50)

    assert memory_of(refuse).peak_bytes < 1 << 20


def test_remembered_uuids_are_bounded() -> None:
    from odradek.protocol.compile_decoder import _uuids

    class Identified(Request, api_key=99, versions=(0, 0), flexible=None):
        numbers: list[int] = array(int8())

    for _ in range(REMEMBERED_UUIDS + 100):
        value = uuid4()
        assert _uuids[value.bytes] == value
    assert len(_uuids) <= REMEMBERED_UUIDS
    assert decode(Identified, 0, b"\x00\x00\x00\x03\x01\xff\x7f").numbers == [1, -1, 127]


def test_the_elements_of_one_message_are_bounded() -> None:
    def names(count: int) -> bytes:
        return count.to_bytes(4, "big") + bytes(2 * count)

    limit = MetadataRequest.element_limit()
    assert len(decode(MetadataRequest, 0, names(limit)).topics) == limit
    with pytest.raises(MalformedMessage, match="too many"):
        decode(MetadataRequest, 0, names(limit + 1))


def test_elements_are_counted_over_all_arrays_of_a_message() -> None:
    class Inner(Struct):
        names: list[str] = array(string())

    class Outer(Request, api_key=99, versions=(0, 0), flexible=None):
        inner: list[Inner] = array(Inner)

    class Answer(Response, api_key=99, versions=(0, 0), flexible=None):
        inner: list[Inner] = array(Inner)

    count = Outer.element_limit() // 2
    one = count.to_bytes(4, "big") + bytes(2 * count)
    assert len(decode(Outer, 0, b"\0\0\0\1" + one).inner[0].names) == count
    with pytest.raises(MalformedMessage, match="too many"):
        decode(Outer, 0, b"\0\0\0\2" + 2 * one)
    assert len(decode(Answer, 0, b"\0\0\0\3" + 3 * one).inner) == 3


def test_sixteen_numbers_count_as_one_element() -> None:
    class Numbers(Request, api_key=99, versions=(0, 0), flexible=None):
        numbers: list[int] = array(int32())

    count = 16 * Numbers.element_limit() + 15
    assert len(decode(Numbers, 0, count.to_bytes(4, "big") + bytes(4 * count)).numbers) == count
    with pytest.raises(MalformedMessage, match="too many"):
        decode(Numbers, 0, (count + 1).to_bytes(4, "big") + bytes(4 * count + 4))


def test_numbers_that_name_partitions_count_in_full() -> None:
    """Numbers are cheap to decode, but each of these is looked up and answered by a struct."""

    def indexes(count: int) -> bytes:
        return b"\0\0\0\1" + bytes(2) + count.to_bytes(4, "big") + bytes(4 * count)

    limit = OffsetFetchRequest.element_limit() - 1  # one element is the topic
    group = bytes(2)
    assert len(decode(OffsetFetchRequest, 1, group + indexes(limit)).topics[0].partition_indexes) == limit
    with pytest.raises(MalformedMessage, match="too many"):
        decode(OffsetFetchRequest, 1, group + indexes(limit + 1))


@pytest.mark.parametrize(
    ("request_type", "levels"),
    [
        (MetadataRequest, 1),
        (ProduceRequest, 2),
        (OffsetFetchRequest, 3),
        (DescribeProducersRequest, 2),
        (AddPartitionsToTxnRequest, 3),
        (WriteTxnMarkersRequest, 3),
        (AlterPartitionReassignmentsRequest, 2),
    ],
)
def test_the_limit_of_elements_grows_with_the_levels_of_arrays(request_type: type[Request], levels: int) -> None:
    assert request_type.element_limit() == levels * request_type.elements_per_level


def test_a_request_for_ten_thousand_partitions_passes() -> None:
    topics = [FetchTopic(topic=f"topic-{index}", partitions=[FetchPartition()]) for index in range(10_000)]
    assert len(decode(FetchRequest, 12, join(FetchRequest(topics=topics), 12)).topics) == 10_000
