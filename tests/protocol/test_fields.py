"""Ranges of versions are read as Kafka writes them."""

import pytest

from odradek.protocol.fields import includes


@pytest.mark.parametrize(
    ("versions", "version", "expected"),
    [
        ("3+", 2, False),
        ("3+", 3, True),
        ("0-6", 6, True),
        ("0-6", 7, False),
        ("4", 4, True),
        ("4", 5, False),
        (None, 0, False),
    ],
)
def test_a_range_holds_its_versions(versions: str | None, version: int, expected: bool) -> None:
    assert includes(versions, version) is expected
