"""Parts of a commit: none too large, and only the whole commit comes back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.configuration.config_types import ConfigResourceType
from odradek.metadata.change_codec import decode_changes
from odradek.metadata.changes import ConfigsChanged
from odradek.metadata.commit_parts import (
    MAX_COMMIT_BYTES,
    MAX_PART_BYTES,
    encode_commit,
    join_parts,
    split_into_parts,
)
from odradek.metadata.store import CommitTooLarge
from odradek.protocol.malformed import MalformedMessage


@pytest.mark.parametrize("size", [0, 1, MAX_PART_BYTES, MAX_PART_BYTES + 1, 3 * MAX_PART_BYTES - 1])
def test_parts_come_back_together(size: int) -> None:
    data = bytes(range(256)) * (size // 256) + bytes(size % 256)
    parts = split_into_parts(data)
    assert max(map(len, parts)) <= MAX_PART_BYTES
    numbered = list(enumerate(parts))
    assert join_parts(numbered[::-1], len(parts)) == data


@given(st.lists(st.integers(-1, 4), max_size=5))
def test_anything_but_the_whole_is_refused(numbers: list[int]) -> None:
    parts = [(number, b"x") for number in numbers]
    if sorted(numbers) == [0, 1, 2]:
        assert join_parts(parts, 3) == b"xxx"
    else:
        with pytest.raises(MalformedMessage):
            join_parts(parts, 3)


def test_commit_is_bounded() -> None:
    half = ConfigsChanged(ConfigResourceType.GROUP, "g", {"a": "x" * (MAX_COMMIT_BYTES // 2)})
    parts = encode_commit([half])
    assert decode_changes(join_parts(list(enumerate(parts)), len(parts))) == [half]
    with pytest.raises(CommitTooLarge, match="split the request"):
        encode_commit([half, half])
