"""Parses the records of the pipeline's topics, in the formats of `examples/rigs/pipeline.yml`.

Any client may write to a topic, so parsing is lenient and never fails.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

Headers = dict[str, str]
Source = tuple[int, int]  # partition and offset of the input record of an output

LONGEST_TEXT = 80
UNKNOWN_REASON = "no reason"


@dataclass(frozen=True, slots=True)
class WarningRecord:
    """A warning. `reported_s` (since the epoch) is when the record that violates the rule was produced."""

    pump: str
    rule: str
    value: float | None = None
    bound: float | None = None
    reported_s: float | None = None


def read_warning(key: bytes | None, value: bytes | None) -> WarningRecord:
    try:
        fields: Any = json.loads(value or b"")
    except (ValueError, RecursionError):
        fields = None
    if not isinstance(fields, dict):
        return WarningRecord(text_of(key), "not a warning")
    return WarningRecord(
        text_of(fields.get("hcid", key)),
        text_of(fields.get("rule")),
        number_of(fields.get("value")),
        number_of(fields.get("bound")),
        time_of(fields.get("reported_at")),
    )


def read_headers(headers: Mapping[str, object]) -> Headers:
    return {name: text_of(value) for name, value in headers.items()}


def read_source(headers: Headers) -> Source | None:
    """Partition and offset, from the header `source` (`2:1047`) or from two headers that end in these words."""
    partition, _, offset = headers.get("source", "").partition(":")
    if not offset:
        partition, offset = (header_ending(headers, word) or "" for word in ("partition", "offset"))
    is_place = partition.isdecimal() and offset.isdecimal() and len(partition) < 10 and len(offset) < 20
    return (int(partition), int(offset)) if is_place else None


def read_reason(headers: Headers) -> str:
    """The kind of a dead letter's reason: the part before the colon, without details of the single record."""
    return (header_ending(headers, "reason") or "").partition(":")[0].strip() or UNKNOWN_REASON


def header_ending(headers: Headers, word: str) -> str | None:
    return next((value for name, value in headers.items() if name.lower().endswith(word)), None)


def text_of(value: object) -> str:
    """The text as one line of limited length, without control characters."""
    if value is None:
        return "?"
    text = value.decode(errors="replace") if isinstance(value, bytes) else str(value)
    text = "".join(character if character.isprintable() else "�" for character in text[: LONGEST_TEXT + 1])
    return text if len(text) <= LONGEST_TEXT else text[: LONGEST_TEXT - 1] + "…"


def number_of(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and abs(value) < 1e15 else None


def time_of(value: object) -> float | None:
    """Parses a time as Spark writes it, in seconds since the epoch; UTC if it has no zone."""
    try:
        moment = datetime.fromisoformat(str(value))
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None
