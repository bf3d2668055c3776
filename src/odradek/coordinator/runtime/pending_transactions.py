"""Coordinator records of open transactions, which change the state once their transaction is committed. Pure.

Of two records of one key, the one that was appended later counts, whichever of their transactions ends first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.coordinator.runtime.coordinator_record import CoordinatorRecord

if TYPE_CHECKING:
    from collections.abc import Iterable, KeysView


class PendingTransactions:
    """By producer id, in the order in which their records were appended."""

    def __init__(self) -> None:
        # By producer id and key: the number of the record in the order of appends, and its value.
        self._records: dict[int, dict[bytes, tuple[int, bytes | None]]] = {}
        self._producers: dict[bytes, set[int]] = {}  # with a record of this key
        self._next_number = 0

    def __bool__(self) -> bool:
        return bool(self._records)

    def clear(self) -> None:
        self._records.clear()
        self._producers.clear()

    def add(self, producer_id: int, records: Iterable[tuple[bytes, bytes | None]]) -> None:
        pending = self._records.setdefault(producer_id, {})
        for key, value in records:
            self._next_number += 1
            pending[key] = self._next_number, value
            self._producers.setdefault(key, set()).add(producer_id)

    def all_keys(self) -> KeysView[bytes]:
        return self._producers.keys()

    def has(self, key: bytes) -> bool:
        return key in self._producers

    def values(self, key: bytes) -> list[bytes | None]:
        """One for each transaction that has a record of this key."""
        return [self._records[producer_id][key][1] for producer_id in self._producers.get(key, ())]

    def overwrite(self, keys: Iterable[bytes]) -> None:
        """Records of these keys, or their tombstones, were appended outside of a transaction."""
        for key in keys:
            for producer_id in self._producers.pop(key, ()):
                del self._records[producer_id][key]

    def abort(self, producer_id: int) -> None:
        for key in self._records.pop(producer_id, ()):
            self._forget(key, {producer_id})

    def commit(self, producer_id: int) -> list[CoordinatorRecord]:
        """Ends the transaction, and returns the records that take effect with it."""
        committed = self._records.pop(producer_id, {})
        for key, (number, _) in committed.items():
            others = self._producers[key] - {producer_id}
            overwritten = {other for other in others if self._records[other][key][0] < number}
            for other in overwritten:
                del self._records[other][key]
            self._forget(key, overwritten | {producer_id})
        return [CoordinatorRecord(key, value) for key, (_, value) in committed.items()]

    def _forget(self, key: bytes, producer_ids: set[int]) -> None:
        producers = self._producers[key]
        producers -= producer_ids
        if not producers:
            del self._producers[key]
