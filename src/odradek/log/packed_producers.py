"""The state of producers that have not written lately, as bytes: about 45 for a producer with one batch, an eighth of
what its objects take. Nothing is lost: all batches that a producer may repeat are kept."""

from array import array
from bisect import bisect_left
from collections.abc import Collection, Iterator
from struct import Struct

from odradek.log.producer_entry import SEQUENCE_MASK, ProducerBatch, ProducerEntry, ProducerSummary
from odradek.protocol.sentinels import NO_EPOCH, NO_OFFSET, NO_SEQUENCE

_HEAD = Struct("=BBh")  # flags, idle checks, epoch
_BATCH = Struct("=iqiq")  # the newest first
_HEAD_AND_BATCH = Struct("=BBhiqiq")
_REST = Struct("=qi")  # last timestamp, coordinator epoch: unless the last batch has this timestamp, without markers
_COUNT_MASK, _USES_TRANSACTIONS, _HAS_REST = 0b00111, 0b01000, 0b10000
_SIZES = [
    _HEAD.size + _BATCH.size * (flags & _COUNT_MASK) + (_REST.size if flags & _HAS_REST else 0) for flags in range(32)
]
_MOST_IDLE_CHECKS = 255
_IDLE_POSITION = 1

_new_tuple = tuple.__new__  # half the cost of the constructor; called for each of thousands of producers


class PackedProducers:
    """By producer id. None of them has an open transaction."""

    __slots__ = ("_data", "_ids", "_positions", "_unused_bytes")

    def __init__(self) -> None:
        self._ids = array("q")  # ascending
        self._positions = array("I")  # of each id, in `_data`
        self._data = bytearray()
        self._unused_bytes = 0

    def __len__(self) -> int:
        return len(self._ids)

    def __contains__(self, producer_id: int) -> bool:
        return self._find(producer_id) is not None

    def __iter__(self) -> Iterator[int]:
        return iter(self._ids)

    def get(self, producer_id: int) -> ProducerEntry | None:
        """A copy: changes of it are not kept."""
        index = self._find(producer_id)
        return None if index is None else self._unpack(self._positions[index])

    def take(self, producer_id: int) -> ProducerEntry | None:
        index = self._find(producer_id)
        if index is None:
            return None
        del self._ids[index]
        position = self._positions.pop(index)
        entry = self._unpack(position)
        self._unused_bytes += _SIZES[self._data[position]]
        if self._unused_bytes > len(self._data) // 2:
            self._copy_without(())
        return entry

    def add(self, producer_id: int, entry: ProducerEntry) -> None:
        """Adds a producer that is not here and has no open transaction."""
        index = bisect_left(self._ids, producer_id)
        self._ids.insert(index, producer_id)
        self._positions.insert(index, len(self._data))
        batches = entry.batches
        flags = len(batches) | (_USES_TRANSACTIONS if entry.uses_transactions else 0)
        has_rest = not batches or entry.coordinator_epoch != NO_EPOCH or entry.last_timestamp != batches[-1].timestamp
        if has_rest:
            flags |= _HAS_REST
        self._data += _HEAD.pack(flags, min(entry.idle_checks, _MOST_IDLE_CHECKS), entry.epoch)
        for batch in reversed(batches):
            self._data += _BATCH.pack(*batch)
        if has_rest:
            self._data += _REST.pack(entry.last_timestamp, entry.coordinator_epoch)

    def remove(self, producer_ids: Collection[int]) -> None:
        if any(map(self.__contains__, producer_ids)):
            self._copy_without(producer_ids)

    def count_idle_check(self) -> Iterator[tuple[int, int]]:
        """How many checks each producer was idle for, with this one, and its id."""
        data = self._data
        for producer_id, position in zip(self._ids, self._positions, strict=True):
            checks = min(data[position + _IDLE_POSITION] + 1, _MOST_IDLE_CHECKS)
            data[position + _IDLE_POSITION] = checks
            yield checks, producer_id

    def summaries(self) -> Iterator[ProducerSummary]:
        data, unpack = self._data, _HEAD_AND_BATCH.unpack_from
        for producer_id, position in zip(self._ids, self._positions, strict=True):
            coordinator_epoch = NO_EPOCH
            if data[position] & _COUNT_MASK:
                flags, _, epoch, sequence, offset, delta, timestamp = unpack(data, position)
            else:
                flags, _, epoch = _HEAD.unpack_from(data, position)
                sequence, offset, delta, timestamp = NO_SEQUENCE, NO_OFFSET, 0, -1
            if flags & _HAS_REST:
                timestamp, coordinator_epoch = _REST.unpack_from(data, position + _SIZES[flags] - _REST.size)
            yield _new_tuple(
                ProducerSummary,
                (producer_id, epoch, sequence, offset, delta, timestamp, coordinator_epoch, NO_OFFSET),
            )

    def ages(self) -> Iterator[tuple[int, int, int]]:
        """The last offset, the last timestamp and the id of each producer."""
        data, unpack = self._data, _HEAD_AND_BATCH.unpack_from
        for producer_id, position in zip(self._ids, self._positions, strict=True):
            flags = data[position]
            offset, timestamp = NO_OFFSET, -1
            if flags & _COUNT_MASK:
                _, _, _, _, offset, _, timestamp = unpack(data, position)
            if flags & _HAS_REST:
                timestamp, _ = _REST.unpack_from(data, position + _SIZES[flags] - _REST.size)
            yield offset, timestamp, producer_id

    def _find(self, producer_id: int) -> int | None:
        index = bisect_left(self._ids, producer_id)
        return index if index < len(self._ids) and self._ids[index] == producer_id else None

    def _unpack(self, position: int) -> ProducerEntry:
        data = self._data
        flags, idle_checks, epoch = _HEAD.unpack_from(data, position)
        entry = ProducerEntry(epoch)
        entry.idle_checks = idle_checks
        entry.uses_transactions = bool(flags & _USES_TRANSACTIONS)
        end = position + _HEAD.size + _BATCH.size * (flags & _COUNT_MASK)
        for batch_position in range(end - _BATCH.size, position, -_BATCH.size):
            entry.batches.append(ProducerBatch(*_BATCH.unpack_from(data, batch_position)))
        if entry.batches:
            last = entry.batches[-1]
            entry.next_sequence = (last.last_sequence + 1) & SEQUENCE_MASK
            entry.last_timestamp = last.timestamp
        if flags & _HAS_REST:
            entry.last_timestamp, entry.coordinator_epoch = _REST.unpack_from(data, end)
        return entry

    def _copy_without(self, removed: Collection[int]) -> None:
        ids, positions, data, old = array("q"), array("I"), bytearray(), self._data
        for producer_id, position in zip(self._ids, self._positions, strict=True):
            if producer_id not in removed:
                ids.append(producer_id)
                positions.append(len(data))
                data += old[position : position + _SIZES[old[position]]]
        self._ids, self._positions, self._data, self._unused_bytes = ids, positions, data, 0
