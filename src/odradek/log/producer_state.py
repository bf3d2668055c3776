"""The state of each idempotent or transactional producer in one partition, and the rules for its next batch: in order,
duplicate, or fenced (KIP-98, KIP-360). Pure; the rules are those of Kafka's ProducerAppendInfo and
ProducerStateEntry."""

from collections.abc import Iterable
from typing import NamedTuple

from odradek.protocol.batch import TRANSACTIONAL_FLAG, BatchHeader
from odradek.protocol.control_records import EndTransactionMarker
from odradek.protocol.errors import ErrorCode
from odradek.protocol.sentinels import NO_EPOCH, NO_OFFSET

CACHED_BATCHES = 5  # a producer has at most five requests in flight
SEQUENCE_MASK = 2**31 - 1  # sequence numbers go on at 0 after the largest int32

# Kafka bounds the number of producers only by expiry; a client that uses a new id for each batch would fill the memory
# before they expire.
PRODUCERS_LIMIT = 100_000

_new_tuple = tuple.__new__  # half the cost of the constructor; called once per append


class ProducerBatch(NamedTuple):
    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp: int

    @property
    def base_sequence(self) -> int:
        return (self.last_sequence - self.offset_delta) & SEQUENCE_MASK

    @property
    def base_offset(self) -> int:
        return self.last_offset - self.offset_delta


class ProducerEntry:
    __slots__ = ("batches", "coordinator_epoch", "current_txn_first_offset", "epoch", "last_timestamp", "next_sequence")

    def __init__(self, epoch: int) -> None:
        self.epoch = epoch
        self.batches: list[ProducerBatch] = []  # the oldest first
        self.next_sequence = 0
        self.last_timestamp = -1
        self.coordinator_epoch = NO_EPOCH  # of the last end-transaction marker
        self.current_txn_first_offset = NO_OFFSET  # of the open transaction

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ProducerEntry):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in self.__slots__)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"ProducerEntry(epoch={self.epoch}, batches={self.batches})"


class ProducerState:
    """The producers of one partition, by producer id, as of `end_offset` when the state is loaded or rebuilt."""

    __slots__ = ("end_offset", "entries")

    def __init__(self) -> None:
        self.entries: dict[int, ProducerEntry] = {}
        self.end_offset = 0

    def check(self, header: BatchHeader) -> ProducerBatch | ErrorCode | None:
        """Returns None when the batch may be appended, the stored batch that it duplicates, or why it is refused."""
        entry = self.entries.get(header.producer_id)
        if entry is None:
            # The producer's state may have expired, or its records were deleted: any sequence is accepted (KIP-360).
            return None
        producer_epoch, base_sequence = header.producer_epoch, header.base_sequence
        if producer_epoch == entry.epoch:
            if base_sequence == entry.next_sequence:
                return None
            last_sequence = (base_sequence + header.last_offset_delta) & SEQUENCE_MASK
            for batch in entry.batches:
                if batch.last_sequence == last_sequence and batch.base_sequence == base_sequence:
                    return batch
            return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        if producer_epoch < entry.epoch:
            return ErrorCode.INVALID_PRODUCER_EPOCH
        return None if base_sequence == 0 else ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER

    def check_marker(self, marker: EndTransactionMarker) -> ErrorCode | None:
        """Why an end-transaction marker is refused; None when it may be appended."""
        entry = self.entries.get(marker.producer_id)
        if entry is None:
            return None
        if marker.producer_epoch < entry.epoch:
            return ErrorCode.INVALID_PRODUCER_EPOCH
        if marker.coordinator_epoch < entry.coordinator_epoch:
            return ErrorCode.TRANSACTION_COORDINATOR_FENCED
        return None

    def update(self, header: BatchHeader, last_offset: int, timestamp: int) -> None:
        """Records a batch that was appended, or that is read from the log to rebuild this state: nothing is checked.
        `last_offset` and `timestamp` are those that the batch was stored with."""
        producer_id, producer_epoch = header.producer_id, header.producer_epoch
        entry = self.entries.get(producer_id)
        if entry is None:
            entry = self._add(producer_id, producer_epoch)
        batches = entry.batches
        if producer_epoch != entry.epoch:
            entry.epoch = producer_epoch
            batches.clear()
        offset_delta = header.last_offset_delta
        last_sequence = (header.base_sequence + offset_delta) & SEQUENCE_MASK
        batches.append(_new_tuple(ProducerBatch, (last_sequence, last_offset, offset_delta, timestamp)))
        if len(batches) > CACHED_BATCHES:
            del batches[0]
        entry.next_sequence = (last_sequence + 1) & SEQUENCE_MASK
        entry.last_timestamp = timestamp
        if header.attributes & TRANSACTIONAL_FLAG and entry.current_txn_first_offset == NO_OFFSET:
            entry.current_txn_first_offset = last_offset - offset_delta

    def end_transaction(self, marker: EndTransactionMarker, timestamp: int) -> None:
        """Records an end-transaction marker. It carries a producer epoch, and no sequence number."""
        entry = self.entries.get(marker.producer_id)
        if entry is None:
            entry = self._add(marker.producer_id, marker.producer_epoch)
        if marker.producer_epoch != entry.epoch:
            entry.epoch = marker.producer_epoch
            entry.batches.clear()
            entry.next_sequence = 0
        entry.coordinator_epoch = marker.coordinator_epoch
        entry.current_txn_first_offset = NO_OFFSET
        entry.last_timestamp = timestamp

    def _add(self, producer_id: int, producer_epoch: int) -> ProducerEntry:
        if len(self.entries) >= PRODUCERS_LIMIT:
            self._remove_oldest()
        entry = self.entries[producer_id] = ProducerEntry(producer_epoch)
        return entry

    def remove_expired(self, now_ms: int, expiration_ms: int) -> int:
        """Removes producers without an open transaction that have not written for that long; returns how many."""
        expired = [
            producer_id
            for producer_id, entry in self.entries.items()
            if entry.current_txn_first_offset == NO_OFFSET and now_ms - entry.last_timestamp >= expiration_ms
        ]
        for producer_id in expired:
            del self.entries[producer_id]
        return len(expired)

    def replace(self, entries: Iterable[tuple[int, ProducerEntry]], end_offset: int) -> None:
        self.entries = dict(entries)
        self.end_offset = end_offset

    def _remove_oldest(self) -> None:
        """Removes an eighth of the limit at once, so that the sort is not repeated for each new producer."""
        by_age = sorted(self.entries, key=lambda producer_id: self.entries[producer_id].last_timestamp)
        for producer_id in by_age[: PRODUCERS_LIMIT // 8]:
            del self.entries[producer_id]
