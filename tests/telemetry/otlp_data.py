"""Writes MetricsData of OpenTelemetry, for pushes of tests."""

import struct


def varint(number: int) -> bytes:
    number &= (1 << 64) - 1
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


def field(number: int, content: bytes | int) -> bytes:
    """A field with a length or, of an integer, a varint."""
    if isinstance(content, int):
        return varint(number << 3) + varint(content)
    return varint(number << 3 | 2) + varint(len(content)) + content


def fixed(number: int, content: bytes) -> bytes:
    return varint(number << 3 | 1) + content


def attribute(name: str, value: str) -> bytes:
    return field(1, name.encode()) + field(2, field(1, value.encode()))


def attributes(number: int, given: dict[str, str]) -> bytes:
    return b"".join(field(number, attribute(name, value)) for name, value in given.items())


def gauge(name: str, value: float, **given: str) -> bytes:
    point = fixed(3, struct.pack("<Q", 7)) + fixed(4, struct.pack("<d", value)) + attributes(7, given)
    return field(1, name.encode()) + field(3, b"1") + field(5, field(1, point))


def counter(name: str, value: int, *, is_delta: bool = True, **given: str) -> bytes:
    point = fixed(2, struct.pack("<Q", 5)) + fixed(6, struct.pack("<q", value)) + attributes(7, given)
    return field(1, name.encode()) + field(7, field(1, point) + field(2, 1 if is_delta else 2) + field(3, 1))


def histogram(name: str, count: int, total: float, **given: str) -> bytes:
    point = fixed(4, struct.pack("<Q", count)) + fixed(5, struct.pack("<d", total)) + attributes(9, given)
    return field(1, name.encode()) + field(9, field(1, point) + field(2, 1))


def metrics_data(*metrics: bytes) -> bytes:
    resource = field(1, field(1, attribute("service.name", "test")))
    scope = field(1, field(1, b"scope")) + b"".join(field(2, each) for each in metrics)
    return field(1, resource + field(2, scope))
