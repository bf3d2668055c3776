"""The error codes are Kafka's, checked against the numbers that kafka-python knows."""

import struct
import warnings
import zipfile
from pathlib import Path

import pytest

from odradek.protocol.errors import ErrorCode


def test_every_code_that_kafka_python_knows_is_here() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        from kafka import errors
    numbers = [getattr(value, "errno", None) for value in vars(errors).values() if isinstance(value, type)]
    known = {number for number in numbers if isinstance(number, int)}
    assert len(known) > 100
    assert known <= {int(code) for code in ErrorCode}


def test_codes_have_kafkas_names() -> None:
    assert ErrorCode(0) is ErrorCode.NONE
    assert ErrorCode(-1) is ErrorCode.UNKNOWN_SERVER_ERROR
    assert ErrorCode(35) is ErrorCode.UNSUPPORTED_VERSION
    assert ErrorCode(45) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert ErrorCode(100) is ErrorCode.UNKNOWN_TOPIC_ID
    assert [int(code) for code in ErrorCode] == list(range(-1, 137))


ENUM_FLAG = 0x4000


def enum_constants(class_file: bytes) -> list[str]:
    """The names of an enum's constants, in their order, from its compiled class (JVM specification, chapter 4)."""
    position = 10
    texts: dict[int, str] = {}
    index = 1
    while index < int.from_bytes(class_file[8:10], "big"):
        tag = class_file[position]
        size = {7: 2, 8: 2, 15: 3, 16: 2, 19: 2, 20: 2, 5: 8, 6: 8}.get(tag, 4)
        if tag == 1:
            size = 2 + int.from_bytes(class_file[position + 1 : position + 3], "big")
            texts[index] = class_file[position + 3 : position + 1 + size].decode()
        position += 1 + size
        index += 2 if tag in (5, 6) else 1
    interfaces = int.from_bytes(class_file[position + 6 : position + 8], "big")
    position += 8 + 2 * interfaces
    count = int.from_bytes(class_file[position : position + 2], "big")
    position += 2
    names = []
    for _ in range(count):
        flags, name, _, attributes = struct.unpack_from(">4H", class_file, position)
        if flags & ENUM_FLAG:
            names.append(texts[name])
        position += 8
        for _ in range(attributes):
            position += 6 + int.from_bytes(class_file[position + 2 : position + 6], "big")
    return names


def test_names_are_those_of_apache_kafka() -> None:
    """Its enumeration lists them by number, from -1 on."""
    jars = sorted(Path.home().glob(".cache/odradek/*/libs/kafka-clients-?.?.?.jar"))
    if not jars:
        pytest.skip("Apache Kafka is not in the cache")
    with zipfile.ZipFile(jars[-1]) as jar:
        names = enum_constants(jar.read("org/apache/kafka/common/protocol/Errors.class"))
    assert names == [code.name for code in ErrorCode][: len(names)]  # clients before 4.4 know fewer
