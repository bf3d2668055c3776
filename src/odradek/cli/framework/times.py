"""Points in time and durations as written on the command line: `2026-01-31T12:00`, `1767225600000`, `-1h`, `500ms`."""

from __future__ import annotations

import re
import time
from datetime import UTC, datetime
from typing import Any

import click

from odradek.cli.framework.parameter_types import INT64_MAX, PairType, quoted
from odradek.notation.sizes import parse_size_bytes

UNITS_MS = {"ms": 1, "s": 1_000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s|min|m|h|d|w)?")


def parse_duration_ms(text: str) -> int:
    """`500ms`, `10s`, `1.5h`; a bare number is seconds. ValueError for anything else, OverflowError past 64 bits."""
    match = _DURATION.fullmatch(text.strip())
    if match is None:
        raise ValueError(text)
    duration_ms = float(match[1]) * UNITS_MS[match[2] or "s"]
    if duration_ms >= INT64_MAX:
        raise OverflowError(text)
    return int(duration_ms)


def parse_time_ms(text: str, now_ms: int) -> int:
    """Milliseconds since the epoch for an ISO time, epoch milliseconds, `now`, or a time ago such as `-1h`.

    ValueError for anything else, OverflowError past 64 bits of milliseconds.
    """
    text = text.strip()
    if text == "now":
        return now_ms
    if text.startswith("-"):
        return now_ms - parse_duration_ms(text[1:])
    if text.isdecimal():
        if len(text) > 40 or int(text) > INT64_MAX:
            raise OverflowError(text)
        return int(text)
    moment = datetime.fromisoformat(text)
    return round(moment.astimezone().timestamp() * 1000)


def iso_text(timestamp_ms: int) -> str:
    """ISO 8601 in UTC with milliseconds; sorts as text."""
    try:
        moment = datetime.fromtimestamp(timestamp_ms / 1000, UTC)
    except (OverflowError, ValueError, OSError):
        return str(timestamp_ms)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{timestamp_ms % 1000:03d}Z"


class TimeType(click.ParamType):  # type: ignore[type-arg]  # generic in the newest click only
    """A point in time, in epoch milliseconds. With `is_written`, times before 1970 are refused."""

    name = "time"

    def __init__(self, *, is_written: bool = False) -> None:
        self.is_written = is_written

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        try:
            time_ms = parse_time_ms(value, int(time.time() * 1000))
        except ValueError:
            hint = "write 2026-01-31T12:00, epoch milliseconds, or -1h"
            self.fail(f"{quoted(value)} is not a time; {hint}", param, ctx)
        except OverflowError:
            self.fail(f"{quoted(value)} is outside of the range of timestamps", param, ctx)
        if self.is_written and time_ms < 0:
            self.fail(f"{quoted(value)} is before 1970; timestamps begin there", param, ctx)
        return time_ms


class SettingType(PairType):
    """`key=value` of a setting. Times and sizes may have units, as in `retention.ms=7d` and `segment.bytes=1GiB`. The
    broker refuses what is neither."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        key, text = super().convert(value, param, ctx)
        match = _DURATION.fullmatch(text)
        if key.endswith(".ms") and match is not None and match[2]:
            return key, str(parse_duration_ms(text))
        size_bytes = parse_size_bytes(text) if key.endswith(".bytes") else None
        return key, text if size_bytes is None else str(size_bytes)


SETTING = SettingType()


class DurationType(click.ParamType):  # type: ignore[type-arg]  # generic in newer versions of click only
    """A length of time, in milliseconds."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        try:
            return parse_duration_ms(value)
        except ValueError:
            self.fail(f"{quoted(value)} is not a duration; write 500ms, 10s or 1h", param, ctx)
        except OverflowError:
            self.fail(f"{quoted(value)} is too long", param, ctx)
