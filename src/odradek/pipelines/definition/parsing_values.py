"""Parses scalar values: durations, timestamps, names, import paths."""

from __future__ import annotations

import datetime
import re

from odradek.pipelines.definition.vocabulary import Duration

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}\Z")
PIPELINE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,127}\Z")
TOPIC_NAME = re.compile(r"[A-Za-z0-9._-]{1,249}\Z")
IMPORT_PATH = re.compile(r"([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*):([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)\Z")
DURATION_PART = re.compile(r"(\d{1,12}(?:\.\d{1,6})?)\s*([A-Za-z]+)\s*")
UNITS_MS = {
    "ms": 1, "millisecond": 1, "s": 1000, "sec": 1000, "second": 1000, "m": 60_000, "min": 60_000, "minute": 60_000,
    "h": 3_600_000, "hour": 3_600_000, "d": 86_400_000, "day": 86_400_000, "week": 604_800_000,
}  # fmt: skip


def parse_duration(text: str) -> Duration | None:
    """Parses `100 ms`, `30 s`, `1 minute`, `1 hour 30 minutes`; None if invalid or shorter than a millisecond."""
    rest = text.strip().lower().removeprefix("interval ")
    total = 0.0
    position = 0
    while position < len(rest):
        part = DURATION_PART.match(rest, position)
        if part is None:
            return None
        unit = UNITS_MS.get(part[2]) or UNITS_MS.get(part[2].removesuffix("s"))
        if unit is None:
            return None
        total += float(part[1]) * unit
        position = part.end()
    if not rest or round(total) < (0 if total == 0 else 1):
        return None
    return Duration(round(total))


def parse_moment(text: str) -> int | None:
    """An ISO 8601 time in milliseconds since 1970, in UTC if it has no zone."""
    try:
        moment = datetime.datetime.fromisoformat(text.strip())
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=datetime.UTC)
    return int(moment.timestamp() * 1000)


def is_topic_name(text: str) -> bool:
    return TOPIC_NAME.match(text) is not None and text not in {".", ".."}
