"""Sizes in powers of 1000."""

from __future__ import annotations

import pytest

from odradek.conventions.figures import parse_size_bytes, size_text


@pytest.mark.parametrize(
    ("size_bytes", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1.0 KB"),
        (999_940, "999.9 KB"),
        (999_999, "1.0 MB"),
        (2.5e12, "2.5 TB"),
        (2.5e15, "2500.0 TB"),
        (-2500, "-2.5 KB"),
    ],
)
def test_the_unit_leaves_at_most_three_digits(size_bytes: float, text: str) -> None:
    assert size_text(size_bytes) == text


@pytest.mark.parametrize(
    ("text", "size_bytes"),
    [("12B", 12), ("1KB", 1_000), ("1KiB", 1_024), ("1.5 GiB", 1_610_612_736), ("2TB", 2_000_000_000_000)],
)
def test_sizes_with_units_are_bytes(text: str, size_bytes: int) -> None:
    assert parse_size_bytes(text) == size_bytes


@pytest.mark.parametrize("text", ["", "12", "1m", "1kb", "1iB", "-1MB", "1 MB/s", "MB"])
def test_what_is_no_size_with_a_unit_is_none(text: str) -> None:
    assert parse_size_bytes(text) is None
