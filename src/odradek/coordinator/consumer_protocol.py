"""The one thing that a coordinator reads in a consumer's own protocol: which topics a member subscribes to.

Everything else in a subscription or an assignment belongs to the clients and is only passed on.
"""

from __future__ import annotations

import struct

CONSUMER_PROTOCOL_TYPE = "consumer"

_head = struct.Struct(">hi").unpack_from  # version, number of topics
_length = struct.Struct(">h").unpack_from


def subscribed_topics(subscription: bytes) -> frozenset[str] | None:
    """Version 0 is the beginning of every version (Kafka's promise); None when these bytes are no subscription."""
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
