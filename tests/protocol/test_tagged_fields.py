"""Sections of tagged fields are skipped by their sizes and written with them."""

from typing import Any

import pytest

from odradek.protocol.malformed import MalformedMessage
from odradek.protocol.tagged_fields import append_tagged_fields, skip_tagged_fields


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
