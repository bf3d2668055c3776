"""Parses the records of the topics that feed a live view. Any client may write to a topic, so parsing never fails."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

Source = tuple[int, int]  # partition and offset of the input record of an output

LONGEST_TEXT = 80
UNKNOWN = "no reason"


@dataclass(frozen=True)
class SeenRecord:
    """A record of a topic. The value is parsed when a column is asked for."""

    topic: str
    key: bytes | None
    value: bytes | None
    headers: Mapping[str, object]

    @cached_property
    def columns(self) -> Mapping[str, Any]:
        """The fields of a JSON object; no fields if the value is something else."""
        try:
            found: Any = json.loads(self.value or b"")
        except (ValueError, RecursionError):
            return {}
        return found if isinstance(found, dict) else {}

    def text(self, column: str) -> str:
        return text_of(self.columns.get(column))

    def number(self, column: str) -> float | None:
        return number_of(self.columns.get(column))

    def time_s(self, column: str) -> float | None:
        return time_of(self.columns.get(column))

    @property
    def source(self) -> Source | None:
        """Partition and offset, from the header `source` (`2:1047`) or from two headers that end in these words."""
        partition, _, offset = self.header("source").partition(":")
        if not offset:
            partition, offset = self.header("partition"), self.header("offset")
        is_place = partition.isdecimal() and offset.isdecimal() and len(partition) < 10 and len(offset) < 20
        return (int(partition), int(offset)) if is_place else None

    def header(self, word: str) -> str:
        """The header of this name, or whose name ends in it; empty if there is none."""
        value = self.headers.get(word)
        if value is None:
            value = next((each for name, each in self.headers.items() if name.lower().endswith(word)), None)
        return "" if value is None else text_of(value)

    def reason(self, header: str) -> str:
        """The kind of a reason: the part before the colon, without details of the single record."""
        return self.header(header).partition(":")[0].strip() or UNKNOWN


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
