"""Numbers and times as people read them, and one prefix for all errors."""

from __future__ import annotations

import pytest

from odradek.cli.framework.output import report_error
from odradek.conventions.failures import without_prefix
from odradek.conventions.figures import age_text, offset_range_text


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
def test_an_age_is_reported_in_two_units_at_most(age_ms: int, text: str) -> None:
    assert age_text(age_ms) == text


@pytest.mark.parametrize(
    ("earliest", "latest", "text"),
    [
        (0, 10, "offsets 0–9, next 10"),
        (3, 4, "offset 3, next 4"),
        (0, 0, "empty"),
        (10, 10, "empty, next 10"),
    ],
)
def test_offset_ranges_name_the_last_offset_and_the_next(earliest: int, latest: int, text: str) -> None:
    assert offset_range_text(earliest, latest) == text


def test_an_error_is_one_line_with_the_prefix(capsys: pytest.CaptureFixture[str]) -> None:
    report_error("it\n  broke")
    assert capsys.readouterr() == ("", "odradek: error: it broke\n")


def test_the_prefix_of_another_process_is_removed() -> None:
    assert without_prefix("odradek: error: it broke") == "it broke"
    assert without_prefix("it broke") == "it broke"
