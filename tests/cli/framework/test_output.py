"""Numbers and times as people read them."""

from __future__ import annotations

import pytest

from odradek.cli.framework.output import age_text


@pytest.mark.parametrize(
    ("age_ms", "text"),
    [
        (0, "0 s"),
        (7, "7 ms"),
        (999, "999 ms"),
        (1_000, "1.0 s"),
        (59_999, "59.9 s"),
        (60_000, "1 min"),
        (123_456, "2 min 3 s"),
        (3_600_000, "1 h"),
        (11_100_000, "3 h 5 min"),
        (86_399_999, "23 h 59 min"),
        (1_051_200_000, "12 d 4 h"),
    ],
)
def test_an_age_is_told_in_two_units_at_most(age_ms: int, text: str) -> None:
    assert age_text(age_ms) == text
