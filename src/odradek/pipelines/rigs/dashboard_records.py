"""What the dashboard reads in the pipeline's topics, in the formats of `examples/rigs/pipeline.yml`.

Anyone may write to a topic: what does not look as expected is read as far as it can be, and never fails.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

Headers = dict[str, str]
Source = tuple[int, int]  # partition and offset of the record that an output was made of

LONGEST_TEXT = 80
UNKNOWN_REASON = "no reason given"


@dataclass(frozen=True, slots=True)
class Warned:
    """`reported_s`, since the epoch, is when the broker's client took the record that broke the rule."""

    pump: str
    rule: str
    value: float | None = None
    bound: float | None = None
    reported_s: float | None = None


def read_warning(key: bytes | None, value: bytes | None) -> Warned:
    try:
        fields: Any = json.loads(value or b"")
    except (ValueError, RecursionError):
        fields = None
    if not isinstance(fields, dict):
        return Warned(text_of(key), "not a warning")
    return Warned(
        text_of(fields.get("hcid", key)),
        text_of(fields.get("rule")),
        number_of(fields.get("value")),
        number_of(fields.get("bound")),
        time_of(fields.get("reported_at")),
    )


def read_headers(headers: Mapping[str, object]) -> Headers:
    return {name: text_of(value) for name, value in headers.items()}


def read_source(headers: Headers) -> Source | None:
    """Partition and offset, from `source: 2:1047` or from two headers that end in these words."""
    partition, _, offset = headers.get("source", "").partition(":")
    if not offset:
        partition, offset = (header_ending(headers, word) or "" for word in ("partition", "offset"))
    is_place = partition.isdecimal() and offset.isdecimal() and len(partition) < 10 and len(offset) < 20
    return (int(partition), int(offset)) if is_place else None


def read_reason(headers: Headers) -> str:
    """Why a record is a dead letter; what follows a colon is about that one record only."""
    return (header_ending(headers, "reason") or "").partition(":")[0].strip() or UNKNOWN_REASON


def header_ending(headers: Headers, word: str) -> str | None:
    return next((value for name, value in headers.items() if name.lower().endswith(word)), None)


def text_of(value: object) -> str:
    """One line without control characters, and not too long."""
    if value is None:
        return "?"
    text = value.decode(errors="replace") if isinstance(value, bytes) else str(value)
    text = "".join(character if character.isprintable() else "�" for character in text[: LONGEST_TEXT + 1])
    return text if len(text) <= LONGEST_TEXT else text[: LONGEST_TEXT - 1] + "…"


def number_of(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and abs(value) < 1e15 else None


def time_of(value: object) -> float | None:
    """Seconds since the epoch, from a time as Spark writes it; without a zone it is UTC."""
    try:
        moment = datetime.fromisoformat(str(value))
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None
