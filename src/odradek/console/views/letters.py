"""Rows of the page of dead letters. Records are prepared by the caller: decoded and masked. Pure."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from odradek.console.views.figures import moment

if TYPE_CHECKING:
    from collections.abc import Sequence

    from odradek.console.cluster.pipelines import ListedLetter
    from odradek.console.records.record import Record

LONGEST_VALUE = 160
LONGEST_REASON = 300


class LetterRow(NamedTuple):
    position: str
    partition: int
    offset: int
    time: str
    step: str
    reason: str
    origin: str
    value: str
    is_redriven: bool
    can_be_redriven: bool


def letter_row(listed: ListedLetter, shown: Record, *, is_masked: bool) -> LetterRow:
    """Details of a reason are an excerpt of the value: with masks, only its kind is shown."""
    found = listed.found
    letter = found.letter
    partition, offset = found.position
    value = (shown.value or b"")[: LONGEST_VALUE * 4].decode(errors="replace")[:LONGEST_VALUE]
    return LetterRow(
        f"{partition}:{offset}",
        partition,
        offset,
        moment(found.timestamp_ms),
        letter.step,
        (letter.kind if is_masked else letter.reason)[:LONGEST_REASON],
        f"{letter.source_topic}-{letter.source.replace(':', ' at ')}" if letter.source_topic else "",
        "null" if found.value is None else value,
        listed.is_redriven,
        letter.can_be_redriven,
    )


def choices(listed: Sequence[ListedLetter]) -> dict[str, list[tuple[str, int]]]:
    """Pipelines, steps and kinds of reasons, the most frequent first."""
    letters = [each.found.letter for each in listed]
    return {
        "pipeline": Counter(letter.pipeline for letter in letters).most_common(50),
        "step": Counter(letter.step for letter in letters).most_common(50),
        "reason": Counter(letter.kind for letter in letters).most_common(50),
    }
