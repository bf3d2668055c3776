"""Encoders write exactly the fields of a version, and leave records and slices as separate parts."""

import pytest

from odradek.protocol.messages.api_versions import ApiVersion, ApiVersionsResponse, SupportedFeatureKey
from odradek.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchResponse,
    LeaderIdAndEpoch,
    PartitionData,
)
from odradek.protocol.messages.metadata import MetadataResponse, MetadataResponsePartition, MetadataResponseTopic
from odradek.protocol.schema import Part, Request, Struct, array, int32, string, struct
from tests.protocol.tables import join


class FileLike:
    """A slice of a file that must not be read to be encoded."""

    def __len__(self) -> int:
        return 300

    def read(self) -> bytes:
        raise AssertionError("an encoder has no business with the content")


@pytest.mark.parametrize(("version", "length"), [(11, b"\x00\x00\x01\x2c"), (12, b"\xad\x02")])
def test_a_slice_goes_into_the_parts_untouched(version: int, length: bytes) -> None:
    records = FileLike()
    response = FetchResponse(
        responses=[FetchableTopicResponse(topic="t", partitions=[PartitionData(partition_index=1, records=records)])]
    )
    parts: list[Part] = response.encode(version)
    place = parts.index(records)
    before = b"".join(part for part in parts[:place] if isinstance(part, bytes))
    assert before.endswith(length)


def test_empty_records_are_no_part() -> None:
    response = FetchResponse(responses=[FetchableTopicResponse(partitions=[PartitionData(records=memoryview(b""))])])
    for version in (11, 12):
        assert all(isinstance(part, bytes) for part in response.encode(version))


def test_fields_that_a_version_lacks_are_not_written() -> None:
    response = ApiVersionsResponse(
        api_keys=[ApiVersion(api_key=18, min_version=0, max_version=4)],
        throttle_time_ms=9,
        supported_features=[SupportedFeatureKey(name="f", min_version=0, max_version=1)],
    )
    assert join(response, 0) == b"\x00\x00" + b"\x00\x00\x00\x01" + b"\x00\x12\x00\x00\x00\x04"
    assert join(response, 1) == join(response, 0) + b"\x00\x00\x00\x09"
    assert join(response, 3) == (
        b"\x00\x00\x02\x00\x12\x00\x00\x00\x04\x00\x00\x00\x00\x09"  # compact count, a tag section per struct
        b"\x01\x00\x08\x02\x02f\x00\x00\x00\x01\x00"  # one tagged field: 0, eight bytes, one feature
    )


def test_tagged_fields_at_their_defaults_are_not_written() -> None:
    def encoded(partition: PartitionData) -> bytes:
        return join(FetchResponse(responses=[FetchableTopicResponse(partitions=[partition])]), 12)

    plain = encoded(PartitionData())
    # The sections of the partition, its topic and the response: nothing in any of them.
    assert plain.endswith(b"\x00\x00\x00")
    assert encoded(PartitionData(current_leader=LeaderIdAndEpoch())) == plain
    leader = b"\x01\x01\x09\x00\x00\x00\x03\xff\xff\xff\xff\x00"
    assert encoded(PartitionData(current_leader=LeaderIdAndEpoch(leader_id=3))) == plain[:-3] + leader + plain[-2:]


def test_tagged_fields_nest_and_are_written_in_the_order_of_their_tags() -> None:
    class Inner(Struct):
        number: int = int32(tag=0, tagged="0+")

    class Outer(Request, api_key=99, versions=(0, 0), flexible=0):
        second: str = string(tag=130, tagged="0+")
        first: Inner = struct(Inner, tag=1, tagged="0+")
        third: list[Inner] | None = array(Inner, nullable="0+", tag=200, tagged="0+")

    outer = Outer(first=Inner(number=7), second="s", third=None)
    assert join(outer, 0) == (
        b"\x03"
        b"\x01\x07\x01\x00\x04\x00\x00\x00\x07"  # tag 1: a struct with a tagged field of its own
        b"\x82\x01\x02\x02s"  # tag 130
        b"\xc8\x01\x01\x00"  # tag 200: null is not the default
    )
    assert Outer.decode(memoryview(join(outer, 0)), 0, 0) == outer


@pytest.mark.parametrize("version", [8, 12])
@pytest.mark.parametrize("count", [0, 1, 2, 126, 127, 128, 300])
def test_arrays_of_any_length_come_back(version: int, count: int) -> None:
    partitions = [MetadataResponsePartition(partition_index=i, replica_nodes=list(range(count))) for i in range(count)]
    response = MetadataResponse(topics=[MetadataResponseTopic(name="t" * count, partitions=partitions)])
    assert MetadataResponse.decode(memoryview(join(response, version)), 0, version) == response


def test_null_where_the_version_does_not_allow_it_is_a_bug() -> None:
    with pytest.raises(AttributeError):
        MetadataResponse(topics=[MetadataResponseTopic(name=None)]).encode(11)
