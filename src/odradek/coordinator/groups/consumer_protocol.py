"""The parts that a coordinator needs of the protocol between consumers of classic groups.

Of a classic group's subscriptions only the topics are read; the rest is passed on between clients. When a group changes
between the classic protocol and KIP-848, its assignments are decoded and encoded here.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from odradek.protocol.malformed import MalformedMessage
from odradek.protocol.schema import Message, Struct, array, bytes_, int32, string

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

CONSUMER_PROTOCOL_TYPE = "consumer"

_head = struct.Struct(">hi").unpack_from  # version, number of topics
_length = struct.Struct(">h").unpack_from


def subscribed_topics(subscription: bytes) -> frozenset[str] | None:
    """Every version starts with the fields of version 0 (Kafka's promise); None when it is not a subscription."""
    try:
        version, count = _head(subscription, 0)
        if version < 0 or not 0 <= count <= len(subscription):
            return None
        position = 6
        topics = []
        for _ in range(count):
            (length,) = _length(subscription, position)
            position += 2
            if length < 0 or position + length > len(subscription):
                return None
            topics.append(subscription[position : position + length].decode())
            position += length
    except (struct.error, UnicodeDecodeError):
        return None
    return frozenset(topics)


class TopicPartitions(Struct):
    topic: str = string()
    partitions: list[int] = array(int32())


class Subscription(Message, versions=(0, 3)):
    topics: list[str] = array(string())
    user_data: bytes | None = bytes_(nullable="0+", default=None)
    owned_partitions: list[TopicPartitions] = array(TopicPartitions, versions="1+")
    generation_id: int = int32(versions="2+", default=-1)
    rack_id: str | None = string(versions="3+", nullable="3+", default=None)


class Assignment(Message, versions=(0, 3)):
    assigned_partitions: list[TopicPartitions] = array(TopicPartitions)
    user_data: bytes | None = bytes_(nullable="0+", default=None)


def decode_subscription(data: bytes) -> Subscription:
    """MalformedMessage when it is not a subscription. An unknown newer version starts with the newest known one."""
    return Subscription.decode(memoryview(data), 2, _version(data, Subscription))


def decode_assignment(data: bytes) -> Assignment:
    return Assignment.decode(memoryview(data), 2, _version(data, Assignment))


def encode_assignment(partitions: Mapping[str, Iterable[int]], subscription: bytes) -> bytes:
    """Encodes the assignment in the version of the member's subscription."""
    version = _version(subscription, Assignment)
    topics = [TopicPartitions(topic=topic, partitions=sorted(some)) for topic, some in partitions.items()]
    parts = Assignment(assigned_partitions=topics).encode(version)
    return version.to_bytes(2, "big") + b"".join(parts)  # type: ignore[arg-type]  # it holds no slices


def _version(data: bytes, message: type[Message]) -> int:
    if len(data) < 2 or data[0] & 0x80:
        raise MalformedMessage("no version of the consumer's protocol")
    return min(int.from_bytes(data[:2], "big"), message.versions[1])
