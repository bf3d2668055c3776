"""What a redrive takes from a dead-letter topic, and what it writes: a selection, a letter, and the plan. Pure."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from odradek.pipelines.letters.ledger import Position
    from odradek.pipelines.letters.letter import Letter

MOST_LETTERS = 10_000
BY_KEY = -1


@dataclass(frozen=True, slots=True)
class Selection:
    """Dead letters of a topic: certain positions, or all that match; `ends` bounds them by partition."""

    topic: str
    positions: frozenset[Position] | None = None
    pipeline: str = ""
    step: str = ""
    reason: str = ""  # its kind
    ends: Mapping[int, int] | None = None
    limit: int = MOST_LETTERS

    def wants(self, position: Position, letter: Letter) -> bool:
        if self.positions is not None:
            return position in self.positions
        return (
            self.pipeline in {"", letter.pipeline}
            and self.step in {"", letter.step}
            and self.reason in {"", letter.kind}
        )


@dataclass(frozen=True, slots=True)
class FoundLetter:
    position: Position
    letter: Letter
    key: bytes | None
    value: bytes | None
    timestamp_ms: int

    @property
    def size_bytes(self) -> int:
        return len(self.key or b"") + len(self.value or b"")

    @property
    def source_partition(self) -> int:
        partition = self.letter.source.partition(":")[0]
        return int(partition) if partition.isdecimal() and len(partition) < 10 else BY_KEY


@dataclass(slots=True)
class Redrive:
    """What a redrive writes, or has written, by source topic; and what it leaves out."""

    topics: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    positions: list[Position] = field(default_factory=list)
    size_bytes: int = 0
    done_before: int = 0
    without_origin: int = 0
    is_cut: bool = False  # by a limit
    unreadable: list[str] = field(default_factory=list)  # batches of dead letters, with the reason
    ends: dict[int, int] = field(default_factory=dict)

    @property
    def records(self) -> int:
        return len(self.positions)

    def as_object(self) -> dict[str, Any]:
        return {
            "records": self.records,
            "topics": dict(self.topics),
            "reasons": dict(self.reasons),
            "size_bytes": self.size_bytes,
            "redriven_before": self.done_before,
            "without_origin": self.without_origin,
            "is_cut": self.is_cut,
            "unreadable": self.unreadable,
        }
