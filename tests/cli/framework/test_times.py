"""Times and durations as people write them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.cli.framework.parameter_types import SETTING
from odradek.conventions.figures import iso_text, parse_duration_ms, parse_time_ms

NOW_MS = 1_600_000_000_000


@pytest.mark.parametrize(
    ("text", "duration_ms"),
    [
        ("500ms", 500),
        ("10s", 10_000),
        ("10", 10_000),
        ("1.5h", 5_400_000),
        ("2m", 120_000),
        ("2min", 120_000),
        ("1d", 86_400_000),
        ("0", 0),
    ],
)
def test_durations(text: str, duration_ms: int) -> None:
    assert parse_duration_ms(text) == duration_ms


@pytest.mark.parametrize("text", ["", "h", "-1s", "1 hour", "1x", "1h30m"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="^" + text.replace("-", r"\-") + "$"):
        parse_duration_ms(text)


@pytest.mark.parametrize(
    ("text", "time_ms"),
    [
        ("now", NOW_MS),
        ("-1h", NOW_MS - 3_600_000),
        ("1577836800000", 1_577_836_800_000),
        ("2020-01-01T00:00:00Z", 1_577_836_800_000),
        ("2020-01-01T01:00:00.250+01:00", 1_577_836_800_250),
    ],
)
def test_times(text: str, time_ms: int) -> None:
    assert parse_time_ms(text, NOW_MS) == time_ms


@given(st.integers(min_value=0, max_value=253_402_300_799_999))
def test_iso_text_reads_back(timestamp_ms: int) -> None:
    assert parse_time_ms(iso_text(timestamp_ms), NOW_MS) == timestamp_ms


@pytest.mark.parametrize("timestamp_ms", [-(2**63), 2**63 - 1])
def test_times_beyond_the_calendar_are_shown_as_numbers(timestamp_ms: int) -> None:
    assert iso_text(timestamp_ms) == str(timestamp_ms)


@pytest.mark.parametrize("text", ["999999999999999w", "9" * 400, "9" * 5000 + "ms"])
def test_durations_past_64_bits_overflow(text: str) -> None:
    with pytest.raises(OverflowError):
        parse_duration_ms(text)


@pytest.mark.parametrize("text", ["99999999999999999999", "9" * 5000, "-999999999999999w"])
def test_times_past_64_bits_overflow(text: str) -> None:
    with pytest.raises(OverflowError):
        parse_time_ms(text, NOW_MS)


@pytest.mark.parametrize(
    ("text", "setting"),
    [
        ("retention.ms=1h", ("retention.ms", "3600000")),
        ("retention.ms=1.5d", ("retention.ms", "129600000")),
        ("retention.ms=90min", ("retention.ms", "5400000")),
        ("retention.ms=-1", ("retention.ms", "-1")),
        ("retention.ms=1000", ("retention.ms", "1000")),
        ("retention.ms=soon", ("retention.ms", "soon")),  # the broker refuses it
        ("retention.ms=10.5", ("retention.ms", "10.5")),
        ("retention.bytes=1m", ("retention.bytes", "1m")),
        ("retention.bytes=1GiB", ("retention.bytes", "1073741824")),
        ("retention.bytes=-1", ("retention.bytes", "-1")),
        ("segment.bytes=10MB", ("segment.bytes", "10000000")),
        ("cleanup.policy=", ("cleanup.policy", "")),
    ],
)
def test_settings_take_units_of_time_and_size(text: str, setting: tuple[str, str]) -> None:
    assert SETTING.convert(text, None, None) == setting
