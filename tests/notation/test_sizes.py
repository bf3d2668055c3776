"""Sizes in powers of 1000."""

from __future__ import annotations

import pytest

from odradek.notation.sizes import size_text


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
