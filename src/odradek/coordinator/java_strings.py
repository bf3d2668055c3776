"""What Java says about a string. Groups find their partition by Java's hash, and limits count Java's characters."""

import struct


def java_hash(text: str) -> int:
    """`String.hashCode`: over UTF-16 units, in signed 32 bits."""
    data = text.encode("utf-16-be")
    value = 0
    for (unit,) in struct.iter_unpack(">H", data):
        value = (31 * value + unit) & 0xFFFFFFFF
    return value - (1 << 32) if value >= 1 << 31 else value


def partition_of(key: str, partition_count: int) -> int:
    """Where a coordinator keeps this key. Java has no absolute value for the smallest number; Kafka takes zero."""
    value = java_hash(key)
    return 0 if value == -(1 << 31) else abs(value) % partition_count


def java_length(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-16-be")) // 2
