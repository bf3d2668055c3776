"""Reading a subscription's topics out of bytes that a client made."""

import struct

from hypothesis import given
from hypothesis import strategies as st

from odradek.coordinator.consumer_protocol import subscribed_topics


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
