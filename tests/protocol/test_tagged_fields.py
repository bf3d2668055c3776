"""Sections of tagged fields are skipped by their sizes and written with them."""

from typing import Any

import pytest

from odradek.protocol.malformed import MalformedMessage
from odradek.protocol.messages.fetch import FetchRequest
from odradek.protocol.messages.metadata import MetadataRequest
from odradek.protocol.tagged_fields import MOST_TAGGED_FIELDS, append_tagged_fields, skip_tagged_fields
from odradek.protocol.varints import encode_unsigned_varint


def test_what_was_written_is_skipped_whole() -> None:
    parts: list[Any] = []
    append_tagged_fields(parts.append, [(b"\x00", [b"ab", memoryview(b"c")]), (b"\x81\x01", [])])
    section = b"".join(parts)
    assert section == b"\x02\x00\x03abc\x81\x01\x00"
    assert skip_tagged_fields(section, 1, 2) == len(section)


@pytest.mark.parametrize("section", [b"\x00", b"\x00\x02a", b"\x80"])
def test_a_section_that_is_cut_off_is_refused(section: bytes) -> None:
    with pytest.raises(MalformedMessage):
        skip_tagged_fields(section, 0, 1)


def test_a_section_with_more_fields_than_any_message_has_is_refused_at_once() -> None:
    section = b"\x05\x00" * (MOST_TAGGED_FIELDS + 1)
    assert skip_tagged_fields(section, 0, MOST_TAGGED_FIELDS) == 2 * MOST_TAGGED_FIELDS
    with pytest.raises(MalformedMessage, match="1001 tagged fields"):
        skip_tagged_fields(section, 0, MOST_TAGGED_FIELDS + 1)


def test_known_tagged_fields_that_are_repeated_are_refused_at_once() -> None:
    """Field 0 of a Fetch request is the id of the cluster, which may be null."""
    empty = FetchRequest(cluster_id=None).encode(12)
    whole = b"".join(bytes(part) for part in empty)  # type: ignore[arg-type]  # requests hold no slices
    assert whole.endswith(b"\0")
    repeated = whole[:-1] + encode_unsigned_varint(MOST_TAGGED_FIELDS + 1) + b"\0\1\0" * (MOST_TAGGED_FIELDS + 1)
    with pytest.raises(MalformedMessage, match="1001 tagged fields"):
        FetchRequest.decode(memoryview(repeated), 0, 12)


def test_tagged_fields_of_a_request_count_as_elements() -> None:
    """Each of the topics has as many tagged fields as a section may have."""
    topics = MetadataRequest.element_limit() // MOST_TAGGED_FIELDS + 1
    name = b"\2a" if MetadataRequest.versions[1] < 10 else bytes(16) + b"\2a"
    topic = name + encode_unsigned_varint(MOST_TAGGED_FIELDS) + b"\5\0" * MOST_TAGGED_FIELDS
    body = encode_unsigned_varint(topics + 1) + topic * topics + b"\0\0\0"
    with pytest.raises(MalformedMessage, match="too many"):
        MetadataRequest.decode(memoryview(body), 0, 12)
