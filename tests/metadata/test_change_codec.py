"""Changes as bytes: what was encoded is decoded, and nothing else crashes the decoder."""

import uuid
from collections.abc import Iterator
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odradek.metadata.change_codec import CODEC_VERSION, decode_changes, encode_changes
from odradek.metadata.changes import Change, ControllerElected, PartitionsAdded, ProducerIdsAllocated, TopicCreated
from odradek.metadata.entities import PartitionImage, TopicImage
from odradek.metadata.snapshot import empty_image
from odradek.protocol.malformed import MalformedMessage
from tests.metadata.random_changes import commits

EMPTY = empty_image("cluster")
SAMPLE: list[Change] = [
    TopicCreated(TopicImage("t", uuid.UUID(int=1), (PartitionImage(0, (0, 1), (0,), 0, 2, 3),), is_internal=False)),
    ControllerElected(3, 9),
]


@settings(max_examples=30, deadline=None)
@given(commits(EMPTY))
def test_round_trip(made: list[list[Change]]) -> None:
    for changes in made:
        assert decode_changes(encode_changes(changes)) == changes


def test_format_is_stable() -> None:
    """Files hold these bytes: a change of the format needs a new version byte and a decoder for this one."""
    assert encode_changes(SAMPLE).hex() == (
        "01"
        "01000000000000000000000000000000010000000174"
        "00000001000000000000000000000002000000030002010000000000000001000100000000"
        "0a0000000300000009"
    )  # fmt: skip


def test_other_version_is_refused_by_its_number() -> None:
    data = bytes([CODEC_VERSION + 1]) + encode_changes(SAMPLE)[1:]
    with pytest.raises(MalformedMessage, match=f"version {CODEC_VERSION + 1}; this broker knows {CODEC_VERSION}"):
        decode_changes(data)


def test_every_truncation_is_refused() -> None:
    data = encode_changes(SAMPLE)
    whole = {1, len(encode_changes(SAMPLE[:1])), len(data)}
    for size in range(len(data)):
        if size in whole:
            decode_changes(data[:size])
        else:
            with pytest.raises(MalformedMessage):
                decode_changes(data[:size])


@given(st.binary(max_size=200))
def test_any_bytes_are_decoded_or_refused(data: bytes) -> None:
    with suppress(MalformedMessage):
        decode_changes(bytes([CODEC_VERSION]) + data)


@settings(max_examples=30, deadline=None)
@given(commits(EMPTY, most=3), st.data())
def test_damaged_changes_are_decoded_or_refused(made: list[list[Change]], data: st.DataObject) -> None:
    damaged = bytearray(encode_changes([change for changes in made for change in changes]))
    for _ in range(data.draw(st.integers(1, 4))):
        damaged[data.draw(st.integers(1, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    with suppress(MalformedMessage):
        decode_changes(bytes(damaged))


@pytest.mark.parametrize(
    "rest",
    [
        b"\x05\x20" + b"\x00\x00\x00\x01g" + b"\xff\xff\xff\xff",  # settings
        b"\x03" + bytes(16) + b"\xff\xff\xff\xff",  # partitions
        b"\x03" + bytes(16) + b"\x00\x00\x00\x01" + bytes(16) + b"\xff\xff\x00",  # replicas
        b"\x08" + bytes(13) + b"\x00" + b"\xff\xff\xff\xff",  # endpoints
        b"\x05\x20" + b"\xff\xff\xff\xff",  # a text
    ],
)
def test_count_that_does_not_fit_is_refused_before_it_is_used(rest: bytes) -> None:
    with pytest.raises(MalformedMessage, match=r"do not fit|are missing"):
        decode_changes(bytes([CODEC_VERSION]) + rest)


def test_many_replicas() -> None:
    brokers = tuple(range(300))
    added: list[Change] = [PartitionsAdded(uuid.UUID(int=1), (PartitionImage(0, brokers, brokers[1:], 0, 0, 0),))]
    assert decode_changes(encode_changes(added)) == added


def test_encoding_stops_at_the_limit() -> None:
    def endless() -> Iterator[Change]:
        while True:
            yield ProducerIdsAllocated(1)

    assert encode_changes(endless(), 1000) is None
    data = encode_changes(SAMPLE)
    assert encode_changes(SAMPLE, len(data)) == data
    assert encode_changes(SAMPLE, len(data) - 1) is None
