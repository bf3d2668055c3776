"""What Spark would refuse in a query or expression."""

from __future__ import annotations

from odradek.conventions.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Finding:
    """What Spark would refuse, a hint, and the position in the text (from 1)."""

    message: str
    hint: str
    line: int
    column: int
