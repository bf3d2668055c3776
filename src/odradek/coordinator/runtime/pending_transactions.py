"""Coordinator records of open transactions, which change the state once their transaction is committed. Pure.

Of two records of one key, the one that was appended later counts, whichever of their transactions ends first.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from odradek.coordinator.runtime.coordinator_record import CoordinatorRecord

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


class PendingTransactions:
    """By producer id, in the order in which their records were appended."""

    def __init__(self) -> None:
        self._records: dict[
            int, dict[bytes, tuple[int, bytes | None]]
        ] = {}  # value: its place in the order, and itself
        self._next_place = 0

    def __bool__(self) -> bool:
        return bool(self._records)

    def clear(self) -> None:
        self._records.clear()

    def add(self, producer_id: int, records: Iterable[tuple[bytes, bytes | None]]) -> None:
        pending = self._records.setdefault(producer_id, {})
        for key, value in records:
            self._next_place += 1
            pending[key] = self._next_place, value

    def all_keys(self) -> Iterator[bytes]:
        return itertools.chain.from_iterable(self._records.values())

    def has(self, key: bytes) -> bool:
        return any(key in pending for pending in self._records.values())

    def overwrite(self, keys: Iterable[bytes]) -> None:
        """Records of these keys were appended outside of a transaction."""
        for key in keys:
            for pending in self._records.values():
                pending.pop(key, None)

    def abort(self, producer_id: int) -> None:
        self._records.pop(producer_id, None)

    def commit(self, producer_id: int) -> list[CoordinatorRecord]:
        """The records that take effect now."""
        committed = self._records.pop(producer_id, {})
        for key, (place, _) in committed.items() if self._records else ():
            for pending in self._records.values():
                if key in pending and pending[key][0] < place:
                    del pending[key]
        return [CoordinatorRecord(key, value) for key, (_, value) in committed.items()]
