"""A record of a dead-letter topic: the original bytes, with the reason and the origin in the first headers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.conventions.dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Sequence

REASON_HEADER = "odradek-reason"
PIPELINE_HEADER = "odradek-pipeline"
STEP_HEADER = "odradek-step"
TOPIC_HEADER = "odradek-source-topic"
SOURCE_HEADER = "odradek-source"  # partition:offset
ID_HEADER = "odradek-id"
WITH_ORIGIN = (REASON_HEADER, PIPELINE_HEADER, STEP_HEADER, TOPIC_HEADER, SOURCE_HEADER, ID_HEADER)
WITHOUT_ORIGIN = (REASON_HEADER, PIPELINE_HEADER, STEP_HEADER, ID_HEADER)

Header = tuple[str, bytes | None]


@dataclass(frozen=True, slots=True)
class Letter:
    """`source_topic` is empty for a row that has no record of its own, which cannot be written back.

    `headers` are those of the original record.
    """

    reason: str
    pipeline: str
    step: str
    source_topic: str
    source: str
    headers: tuple[Header, ...]

    @property
    def can_be_redriven(self) -> bool:
        return bool(self.source_topic)

    @property
    def kind(self) -> str:
        """The kind of the reason: without details of the single record."""
        return self.reason.partition(":")[0].strip() or "no reason"


def parse_letter(headers: Sequence[Header]) -> Letter | None:
    """None for a record that no pipeline has written.

    The headers of the origin are the first ones, in a fixed order: the original record may have headers of the same
    names, which follow them and are its own.
    """
    names = tuple(name for name, _value in headers)
    for prefix in (WITH_ORIGIN, WITHOUT_ORIGIN):
        if names[: len(prefix)] == prefix:
            texts = [(value or b"").decode(errors="replace") for _name, value in headers[: len(prefix)]]
            reason, pipeline, step, *origin, _id = texts
            topic, source = origin or ("", "")
            return Letter(reason, pipeline, step, topic, source, tuple(headers[len(prefix) :]))
    return None
