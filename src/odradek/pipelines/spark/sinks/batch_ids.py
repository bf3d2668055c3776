"""The id of a batch for functions of the user."""

from __future__ import annotations

from typing import Self


class BatchId(int):
    """The number of a batch. Numbers start over with a new checkpoint, after a reset and in each run over all records.

    `checkpoint` is different then: a batch is the same only if both are equal."""

    checkpoint: str

    def __new__(cls, number: int, checkpoint: str) -> Self:
        made = super().__new__(cls, number)
        made.checkpoint = checkpoint
        return made

    def __reduce__(self) -> tuple[type[Self], tuple[int, str]]:
        return type(self), (int(self), self.checkpoint)
