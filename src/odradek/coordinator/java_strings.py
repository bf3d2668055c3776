"""Java's hash and length of a string: coordinators find the partition of a key by the hash, and limits count UTF-16
units."""

import struct


def java_hash(text: str) -> int:
    """`String.hashCode`: over UTF-16 units, in signed 32 bits."""
    data = text.encode("utf-16-be")
    value = 0
    for (unit,) in struct.iter_unpack(">H", data):
        value = (31 * value + unit) & 0xFFFFFFFF
    return value - (1 << 32) if value >= 1 << 31 else value


def partition_of(key: str, partition_count: int) -> int:
    """The partition that holds this key. The smallest integer has no absolute value in Java; Kafka takes zero."""
    value = java_hash(key)
    return 0 if value == -(1 << 31) else abs(value) % partition_count


def java_length(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-16-be")) // 2
