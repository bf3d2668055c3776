"""Where a group lives depends on Java's arithmetic; the numbers are Java's."""

import pytest

from odradek.coordinator.java_strings import java_hash, java_length, partition_of


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", 0),
        ("g", 103),
        ("my-group", -1906497762),
        ("gruppe-ü", 673522922),
        ("😀", 1772899),
        ("polygenelubricants", -(2**31)),
        ("consumer-group-1", 147483020),
    ],
)
def test_the_hash_is_javas(text: str, value: int) -> None:
    assert java_hash(text) == value


def test_the_partition_is_never_negative() -> None:
    assert partition_of("my-group", 50) == 12
    assert partition_of("polygenelubricants", 50) == 0


def test_characters_are_utf_16_units() -> None:
    assert [java_length(text) for text in ("", "abc", "ü", "😀")] == [0, 3, 1, 2]
