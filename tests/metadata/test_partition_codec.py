"""Partitions as bytes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.metadata.entities import PartitionImage
from odradek.metadata.partition_codec import decode_partitions, encode_partitions
from odradek.protocol.malformed import MalformedMessage
from tests.metadata.random_changes import new_partitions


@given(st.integers(0, 4).flatmap(lambda count: new_partitions(0, count)), st.binary(max_size=5))
def test_round_trip_at_any_position(partitions: tuple[PartitionImage, ...], before: bytes) -> None:
    out = bytearray(before)
    encode_partitions(out, partitions)
    assert decode_partitions(bytes(out) + b"after", len(before)) == (partitions, len(out))


def test_plain_partition_takes_few_bytes() -> None:
    out = bytearray()
    encode_partitions(out, [PartitionImage(5, (1,), (1,), 1, 0, 0)])
    assert len(out) == 4 + 19 + 4


def test_unknown_flags_are_refused() -> None:
    out = bytearray()
    encode_partitions(out, [PartitionImage(0, (), (), 1, 0, 0)])
    out[-1] = 32
    with pytest.raises(MalformedMessage, match="unknown flags 32"):
        decode_partitions(bytes(out), 0)
