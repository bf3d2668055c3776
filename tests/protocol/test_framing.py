"""Request headers are decoded for every API, and response headers have the two versions of KIP-482."""

import contextlib
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.protocol.framing import decode_request_header, encode_response_header
from odradek.protocol.malformed import MalformedMessage

FLEXIBLE_FROM = {18: 3, 3: 9}


def header(api_key: int, version: int, client_id: bytes | None, rest: bytes = b"") -> memoryview:
    length = -1 if client_id is None else len(client_id)
    return memoryview(struct.pack(">hhih", api_key, version, 77, length) + (client_id or b"") + rest)


def test_a_header_of_a_version_that_is_not_flexible_ends_after_the_client_id() -> None:
    decoded = decode_request_header(header(3, 8, b"me", b"body"), FLEXIBLE_FROM.get)
    assert (decoded.api_key, decoded.api_version, decoded.correlation_id, decoded.client_id) == (3, 8, 77, "me")
    assert decoded.body_position == 12


@pytest.mark.parametrize(("tags", "size"), [(b"\x00", 1), (b"\x02\x00\x01a\x05\x02bc", 8)])
def test_a_flexible_header_has_tagged_fields_that_are_passed_over(tags: bytes, size: int) -> None:
    assert decode_request_header(header(3, 9, None, tags + b"body"), FLEXIBLE_FROM.get).body_position == 10 + size


def test_a_version_newer_than_any_is_read_as_flexible() -> None:
    decoded = decode_request_header(header(18, 99, b"", b"\x00body"), FLEXIBLE_FROM.get)
    assert (decoded.api_version, decoded.client_id, decoded.body_position) == (99, "", 11)


@pytest.mark.parametrize("api_key", [-1, 999, 32767])
def test_an_unknown_api_is_read_as_far_as_the_client_id(api_key: int) -> None:
    decoded = decode_request_header(header(api_key, -5, None), FLEXIBLE_FROM.get)
    assert (decoded.api_key, decoded.api_version, decoded.client_id, decoded.body_position) == (api_key, -5, None, 10)
    assert "api_version=-5" in repr(decoded)


@pytest.mark.parametrize(
    "frame",
    [
        b"",
        bytes(9),
        bytes(8) + b"\x00\x01",
        bytes(8) + b"\xff\xfe",
        bytes(8) + b"\x00\x02\xc3\x28",
        bytes(header(3, 9, None)),
        bytes(header(3, 9, None, b"\x01\x00\x05a")),
        bytes(header(3, 9, None, b"\xff\xff\xff\xff\x0f\x00\x00")),
    ],
)
def test_headers_that_are_cut_off_or_lie_are_refused(frame: bytes) -> None:
    with pytest.raises(MalformedMessage):
        decode_request_header(memoryview(frame), FLEXIBLE_FROM.get)


@given(st.binary(max_size=40))
def test_noise_is_a_header_or_malformed_and_nothing_else(noise: bytes) -> None:
    with contextlib.suppress(MalformedMessage):
        assert decode_request_header(memoryview(noise), lambda _key: 0).body_position <= len(noise)


def test_response_headers() -> None:
    assert encode_response_header(7, flexible=False, body_bytes=300) == b"\x00\x00\x01\x30" + b"\x00\x00\x00\x07"
    assert encode_response_header(-1, flexible=True, body_bytes=0) == b"\x00\x00\x00\x05" + b"\xff\xff\xff\xff\x00"
