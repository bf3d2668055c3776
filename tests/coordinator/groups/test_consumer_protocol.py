"""What clients of classic groups tell each other: read from any bytes, and written in the version that they speak."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.coordinator.groups.consumer_protocol import (
    decode_assignment,
    decode_subscription,
    encode_assignment,
    subscribed_topics,
)
from odradek.protocol.malformed import MalformedMessage


def subscription(topics: list[str], version: int = 0, rest: bytes = b"\xff\xff\xff\xff") -> bytes:
    names = b"".join(struct.pack(">h", len(name.encode())) + name.encode() for name in topics)
    return struct.pack(">hi", version, len(topics)) + names + rest


@given(st.lists(st.text(max_size=20), max_size=5), st.integers(0, 9), st.binary(max_size=30))
def test_every_version_begins_like_the_first(topics: list[str], version: int, rest: bytes) -> None:
    assert subscribed_topics(subscription(topics, version, rest)) == frozenset(topics)


def test_what_is_no_subscription_says_nothing() -> None:
    assert subscribed_topics(b"") is None
    assert subscribed_topics(b"\0\0\x7f\xff\xff\xff") is None
    assert subscribed_topics(subscription(["a"], -1)) is None
    assert subscribed_topics(subscription(["topic"])[:9]) is None
    assert subscribed_topics(b"\0\0\0\0\0\1\0\1\xff") is None


@given(st.binary(max_size=40))
def test_any_bytes_are_survived(data: bytes) -> None:
    subscribed_topics(data)


def test_a_subscription_with_all_that_it_can_have() -> None:
    owned = b"\0\0\0\1" + b"\0\1t" + b"\0\0\0\2" + b"\0\0\0\0" + b"\0\0\0\5"
    data = subscription(["t"], 3, b"\xff\xff\xff\xff" + owned + b"\0\0\0\7" + b"\0\1r")
    decoded = decode_subscription(data)
    assert (decoded.topics, decoded.user_data, decoded.generation_id, decoded.rack_id) == (["t"], None, 7, "r")
    assert [(each.topic, each.partitions) for each in decoded.owned_partitions] == [("t", [0, 5])]
    assert decode_subscription(data.replace(b"\0\3", b"\0\x09", 1)) == decoded, "a newer version begins alike"


@given(st.dictionaries(st.text(max_size=9), st.sets(st.integers(0, 2**31 - 1))), st.integers(0, 9))
def test_an_assignment_comes_back_in_the_version_of_its_reader(topics: dict[str, set[int]], version: int) -> None:
    data = encode_assignment(topics, struct.pack(">h", version))
    assert data[:2] == struct.pack(">h", min(version, 3))
    decoded = decode_assignment(data)
    assert {each.topic: each.partitions for each in decoded.assigned_partitions} == {
        topic: sorted(partitions) for topic, partitions in topics.items()
    }
    assert decoded.user_data is None


@given(st.binary(max_size=40))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    for decode in (decode_subscription, decode_assignment):
        try:
            decode(data)
        except MalformedMessage:
            continue


@pytest.mark.parametrize("data", [b"", b"\0", b"\xff\xff\0\0\0\0", b"\0\0\0\0\0\1"])
def test_what_is_no_message_is_refused(data: bytes) -> None:
    with pytest.raises(MalformedMessage):
        decode_subscription(data)
