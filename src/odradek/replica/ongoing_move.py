"""What a partition and requests use of a move of its replica to another log directory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from odradek.log.log_directory import LogDirectory


class OngoingMove(Protocol):
    target: LogDirectory
    is_cancelled: bool

    @property
    def is_copying(self) -> bool: ...

    @property
    def lag(self) -> int:
        """How many offsets the copy is behind."""

    @property
    def size_bytes(self) -> int: ...
