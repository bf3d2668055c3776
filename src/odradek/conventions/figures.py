"""Counts, sizes, durations, times and percentiles: how they are written, and how they are read. Pure."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime

INT32_MAX = 2**31 - 1
INT64_MAX = 2**63 - 1


UNITS = ("B", "KB", "MB", "GB", "TB")
_SIZE = re.compile(r"(\d+(?:\.\d+)?) ?([KMGT]?)((?<=[KMGT])i)?B")


def size_text(size_bytes: float) -> str:
    """12 B, 3.4 KB, 1.2 GB: powers of 1000."""
    for unit in UNITS[:-1]:
        if abs(size_bytes) < 999.95:
            return f"{size_bytes:.0f} B" if unit == UNITS[0] else f"{size_bytes:.1f} {unit}"
        size_bytes /= 1000
    return f"{size_bytes:.1f} {UNITS[-1]}"


def parse_size_bytes(text: str) -> int | None:
    """`10MB` is ten million bytes, `10MiB` has powers of 1024. None for anything else, also for a number alone."""
    match = _SIZE.fullmatch(text)
    if match is None:
        return None
    number, unit, is_binary = match.groups()
    unit_bytes: int = (1024 if is_binary else 1000) ** UNITS.index(unit + "B")
    return round(float(number) * unit_bytes)


UNITS_MS = {"ms": 1, "s": 1_000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s|min|m|h|d|w)?")


def parse_duration_ms(text: str) -> int:
    """`500ms`, `10s`, `1.5h`; a bare number is seconds. ValueError for anything else, OverflowError past 64 bits."""
    match = DURATION.fullmatch(text.strip())
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


def count_text(count: float, noun: str) -> str:
    """`1 record`, `12,000 records`."""
    return f"{count:,.0f} {noun}{'' if round(count) == 1 else 's'}"


def duration_text(duration_ms: float) -> str:
    """As measured: `4.20 ms`, `451.3 ms`, `12.31 s`."""
    if duration_ms < 10:
        return f"{duration_ms:.2f} ms"
    if duration_ms < 1000:
        return f"{duration_ms:.1f} ms"
    return f"{duration_ms / 1000:.2f} s"


def brief_duration_text(duration_ms: float) -> str:
    """Three digits, for figures that change every second: `4.2 ms`, `451 ms`, `12.3 s`."""
    if duration_ms < 9.95:
        return f"{duration_ms:.1f} ms"
    return f"{duration_ms:.0f} ms" if duration_ms < 999.5 else f"{duration_ms / 1000:.1f} s"


AGE_UNITS = ((86_400, "d", 3600, "h"), (3600, "h", 60, "min"), (60, "min", 1, "s"))


def age_text(age_ms: int) -> str:
    """`320 ms`, `8.2 s`, `2 min 3 s`, `3 h 5 min`, `12 d 4 h`: the two largest units."""
    seconds = age_ms // 1000
    for unit_s, unit, finer_s, finer in AGE_UNITS:
        if seconds >= unit_s:
            rest = seconds % unit_s // finer_s
            return f"{seconds // unit_s:,} {unit}" + (f" {rest} {finer}" if rest else "")
    if seconds:
        return f"{age_ms // 100 / 10:.1f} s"
    return f"{age_ms} ms" if age_ms else "0 s"


def offset_range_text(earliest: int, latest: int) -> str:
    """`offsets 0–9, next 10` for a log that begins at `earliest` and whose next record gets offset `latest`."""
    if earliest >= latest:
        return "empty" if not latest else f"empty, next {latest}"
    held = f"offset {earliest}" if earliest + 1 == latest else f"offsets {earliest}–{latest - 1}"
    return f"{held}, next {latest}"


SHARES = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p99.9": 0.999}


def percentiles(values: Iterable[float], shares: Mapping[str, float] = SHARES) -> dict[str, float]:
    """Shares and the maximum, by nearest rank: the least value that the share does not exceed. Empty without values."""
    ordered = sorted(values)
    if not ordered:
        return {}
    ranks = {name: math.ceil(round(share * len(ordered), 6)) for name, share in shares.items()}
    return {**{name: ordered[rank - 1] for name, rank in ranks.items()}, "max": ordered[-1]}
