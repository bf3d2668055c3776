"""Varints round-trip, and one that exceeds its type is rejected."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.protocol.malformed import MalformedMessage
from odradek.protocol.varints import decode_unsigned_varint, decode_varlong, encode_unsigned_varint, encode_varlong


@given(st.integers(0, 2**32 - 1), st.binary(max_size=3))
def test_unsigned_varints_come_back(value: int, rest: bytes) -> None:
    encoded = encode_unsigned_varint(value)
    assert decode_unsigned_varint(memoryview(rest + encoded + rest), len(rest)) == (value, len(rest) + len(encoded))


@given(st.integers(-(2**63), 2**63 - 1))
def test_varlongs_come_back(value: int) -> None:
    encoded = encode_varlong(value)
    assert len(encoded) <= 10
    assert decode_varlong(encoded, 0) == (value, len(encoded))


@pytest.mark.parametrize(
    ("value", "encoded"), [(0, "00"), (-1, "01"), (1, "02"), (-64, "7f"), (64, "8001"), (300, "d804")]
)
def test_varlongs_have_kafkas_bytes(value: int, encoded: str) -> None:
    assert encode_varlong(value).hex() == encoded


@pytest.mark.parametrize("encoded", ["", "80", "ffffffff", "ffffffff1f", "8080808080", "808080808000"])
def test_bad_unsigned_varints_are_refused(encoded: str) -> None:
    with pytest.raises(MalformedMessage):
        decode_unsigned_varint(bytes.fromhex(encoded), 0)


@pytest.mark.parametrize("encoded", ["", "80", "ff" * 9, "ff" * 9 + "02", "80" * 10 + "00"])
def test_bad_varlongs_are_refused(encoded: str) -> None:
    with pytest.raises(MalformedMessage):
        decode_varlong(bytes.fromhex(encoded), 0)
