"""The state of each idempotent or transactional producer in one partition, and the rules for its next batch: in order,
duplicate, or fenced (KIP-98, KIP-360, KIP-890). Pure; the rules are those of Kafka's ProducerAppendInfo,
ProducerStateEntry and UnifiedLog."""

from collections.abc import Iterable

from odradek.log.producer_entries import ProducerEntries
from odradek.log.producer_entry import SEQUENCE_MASK, ProducerBatch, ProducerEntry
from odradek.log.transaction_index import AbortedTransaction
from odradek.log.transaction_verification import VerificationGuard, Verifications
from odradek.log.unstable_transactions import UnstableTransactions
from odradek.protocol.batch import TRANSACTIONAL_FLAG, BatchHeader
from odradek.protocol.control_records import ControlRecordType, EndTransactionMarker
from odradek.protocol.errors import ErrorCode
from odradek.protocol.sentinels import NO_OFFSET, NO_PRODUCER_EPOCH, NO_SEQUENCE

CACHED_BATCHES = 5  # a producer has at most five requests in flight

# Of one partition: their state is encoded in one go, at each roll of a segment (for all partitions: `producer_limits`).
# Producers with an open transaction are not counted: their state is never removed.
PRODUCERS_LIMIT = 10_000

FIRST_VERSION_WITH_EPOCH_BUMP = 2  # of transactions: the producer epoch rises at the end of each (KIP-890)

_new_tuple = tuple.__new__  # half the cost of the constructor; called once per append


class ProducerState:
    """The producers of one partition, by producer id, as of `end_offset` when the state is loaded or rebuilt."""

    __slots__ = ("end_offset", "entries", "transactions", "verifications")

    def __init__(self) -> None:
        self.entries = ProducerEntries()
        self.end_offset = 0
        self.transactions = UnstableTransactions()
        self.verifications = Verifications()

    # Checking

    def check(
        self, header: BatchHeader, verification: VerificationGuard | None = None
    ) -> ProducerBatch | ErrorCode | None:
        """Returns None when the batch may be appended, the stored batch that it duplicates, or why it is refused. A
        batch without sequence numbers is one of the group coordinator."""
        # Most producers have written lately: asked for without a call, here and in `update`.
        entry = self.entries.recent.get(header.producer_id) or self.entries.get(header.producer_id)
        if entry is None:
            if not header.attributes & TRANSACTIONAL_FLAG and not self.verifications.pending:
                return self._check_sequence(header, None)
        elif not entry.uses_transactions and not header.attributes & TRANSACTIONAL_FLAG:
            if header.base_sequence == entry.next_sequence and header.producer_epoch == entry.epoch:
                return None
            return self._check_sequence(header, entry)
        return self._check_transaction(header, verification)

    def _check_sequence(self, header: BatchHeader, entry: ProducerEntry | None) -> ProducerBatch | ErrorCode | None:
        if entry is None:
            # The producer's state may have expired, or its records were deleted: any sequence is accepted (KIP-360).
            return ErrorCode.INVALID_PRODUCER_EPOCH if header.producer_epoch < NO_PRODUCER_EPOCH else None
        producer_epoch, base_sequence = header.producer_epoch, header.base_sequence
        if producer_epoch == entry.epoch:
            if base_sequence in (entry.next_sequence, NO_SEQUENCE):
                return None
            last_sequence = (base_sequence + header.last_offset_delta) & SEQUENCE_MASK
            for batch in entry.batches:
                if batch.last_sequence == last_sequence and batch.base_sequence == base_sequence:
                    return batch
            return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        if producer_epoch < entry.epoch:
            return ErrorCode.INVALID_PRODUCER_EPOCH
        return None if base_sequence in (0, NO_SEQUENCE) else ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER

    def _check_transaction(
        self, header: BatchHeader, verification: VerificationGuard | None
    ) -> ProducerBatch | ErrorCode | None:
        """The order of the checks decides which error wins: duplicate, epoch, verification, sequence, and a batch
        outside the producer's open transaction."""
        producer_id, is_transactional = header.producer_id, header.is_transactional
        entry = self.entries.get(producer_id)
        verdict = self._check_sequence(header, entry)
        if isinstance(verdict, ProducerBatch) or verdict is ErrorCode.INVALID_PRODUCER_EPOCH:
            return verdict
        begins = is_transactional and not self.has_open_transaction(producer_id, header.producer_epoch)
        if begins and not self.verifications.is_valid(producer_id, verification):
            return ErrorCode.INVALID_TXN_STATE
        pending = self.verifications.pending.get(producer_id)
        if pending is not None and header.base_sequence != NO_SEQUENCE:
            has_batches = entry is not None and bool(entry.batches)
            verdict = pending.check_sequence(header.base_sequence, has_batches=has_batches) or verdict
        if verdict is None and not is_transactional and producer_id in self.transactions.open:
            return ErrorCode.INVALID_TXN_STATE
        return verdict

    def has_open_transaction(self, producer_id: int, producer_epoch: int) -> bool:
        """A transaction of an older epoch does not count: it may have ended, and its marker not have come."""
        return producer_id in self.transactions.open and self.entries[producer_id].epoch == producer_epoch

    def begin_verification(
        self, producer_id: int, producer_epoch: int, sequence: int, *, supports_epoch_bump: bool, now_ms: int
    ) -> VerificationGuard | ErrorCode | None:
        """The guard for a batch that would begin a transaction, once the coordinator has confirmed it; None when a
        transaction of this producer and epoch is open, and INVALID_PRODUCER_EPOCH for an older epoch."""
        entry = self.entries.get(producer_id)
        if entry is not None and producer_epoch < entry.epoch:
            return ErrorCode.INVALID_PRODUCER_EPOCH
        if self.has_open_transaction(producer_id, producer_epoch):
            return None
        if entry is not None and not entry.uses_transactions:
            entry = self.entries.get_recent(producer_id) or entry
            entry.uses_transactions = True
        return self.verifications.begin(
            producer_id, producer_epoch, sequence, supports_epoch_bump=supports_epoch_bump, now_ms=now_ms
        )

    def check_marker(self, marker: EndTransactionMarker, transaction_version: int) -> ErrorCode | None:
        """Why an end-transaction marker is refused; None when it may be appended. The epoch of a marker of version 2 is
        higher than that of its transaction, or equal if it is repeated after the transaction has ended
        (KAFKA-19999)."""
        entry = self.entries.get(marker.producer_id)
        if entry is None:
            return None
        if marker.producer_epoch < entry.epoch:
            return ErrorCode.INVALID_PRODUCER_EPOCH
        bumps_epoch = transaction_version >= FIRST_VERSION_WITH_EPOCH_BUMP
        if bumps_epoch and marker.producer_epoch == entry.epoch and marker.producer_id in self.transactions.open:
            return ErrorCode.INVALID_PRODUCER_EPOCH
        if marker.coordinator_epoch < entry.coordinator_epoch:
            return ErrorCode.TRANSACTION_COORDINATOR_FENCED
        return None

    # Updating

    def update(self, header: BatchHeader, last_offset: int, timestamp: int) -> None:
        """Records a batch that was appended, or that is read from the log to rebuild this state: nothing is checked.
        `last_offset` and `timestamp` are those that the batch was stored with."""
        producer_id, producer_epoch = header.producer_id, header.producer_epoch
        entry = self.entries.recent.get(producer_id)
        if entry is None:
            entry = self.entries.get_recent(producer_id) or self._add(producer_id, producer_epoch)
        batches = entry.batches
        if producer_epoch != entry.epoch:
            entry.epoch = producer_epoch
            batches.clear()
        offset_delta, base_sequence = header.last_offset_delta, header.base_sequence
        last_sequence = (base_sequence + offset_delta) & SEQUENCE_MASK if base_sequence >= 0 else NO_SEQUENCE
        batches.append(_new_tuple(ProducerBatch, (last_sequence, last_offset, offset_delta, timestamp)))
        if len(batches) > CACHED_BATCHES:
            del batches[0]
        entry.next_sequence = (last_sequence + 1) & SEQUENCE_MASK
        entry.last_timestamp = timestamp
        entry.idle_checks = 0
        if header.attributes & TRANSACTIONAL_FLAG:
            entry.uses_transactions = True
            if entry.current_txn_first_offset == NO_OFFSET:
                entry.current_txn_first_offset = last_offset - offset_delta
                self.transactions.begin(producer_id, entry.current_txn_first_offset)
            self.verifications.end(producer_id, producer_epoch, is_marker=False)

    def end_transaction(
        self, marker: EndTransactionMarker, marker_offset: int, timestamp: int
    ) -> AbortedTransaction | None:
        """Records an end-transaction marker, and returns the transaction that it has aborted. A marker carries a
        producer epoch, and no sequence number."""
        producer_id = marker.producer_id
        entry = self.entries.get_recent(producer_id) or self._add(producer_id, marker.producer_epoch)
        if marker.producer_epoch != entry.epoch:
            entry.epoch = marker.producer_epoch
            entry.batches.clear()
            entry.next_sequence = 0
        entry.uses_transactions = True
        entry.coordinator_epoch = marker.coordinator_epoch
        entry.current_txn_first_offset = NO_OFFSET
        entry.last_timestamp = timestamp
        entry.idle_checks = 0
        self.verifications.end(producer_id, marker.producer_epoch, is_marker=True)
        first_offset = self.transactions.end(producer_id, marker_offset)
        if first_offset is None or marker.type is not ControlRecordType.ABORT:
            return None
        last_stable_offset = self.transactions.oldest_open_offset(otherwise=marker_offset + 1)
        return AbortedTransaction(first_offset, producer_id, marker_offset, last_stable_offset)

    def replace(self, entries: Iterable[tuple[int, ProducerEntry]], end_offset: int) -> None:
        self.entries = ProducerEntries(entries)
        self.end_offset = end_offset
        self.verifications = Verifications()
        self.transactions = UnstableTransactions(
            (producer_id, entry.current_txn_first_offset)
            for producer_id, entry in self.entries.recent.items()  # those with an open transaction are never packed
            if entry.current_txn_first_offset != NO_OFFSET
        )

    # Removing: never the state of a producer with an open transaction

    def remove_expired(self, now_ms: int, expiration_ms: int) -> int:
        """Removes producers that have not written for that long; returns how many."""
        expired = [
            producer_id
            for _, last_timestamp, producer_id in self.entries.ages()
            if now_ms - last_timestamp >= expiration_ms
        ]
        self.entries.remove(expired)
        self.verifications.remove_expired(now_ms, expiration_ms)
        return len(expired)

    def _add(self, producer_id: int, producer_epoch: int) -> ProducerEntry:
        if len(self.entries) - len(self.transactions.open) >= PRODUCERS_LIMIT:
            self._remove_oldest()
        entry = ProducerEntry(producer_epoch)
        entry.uses_transactions = producer_id in self.verifications.pending
        self.entries.add(producer_id, entry)
        return entry

    def _remove_oldest(self) -> None:
        """Removes the producers whose last batches are the oldest in the log: clients choose timestamps, and a producer
        that wrote recently may send its batch again. An eighth of the limit is free afterwards, so that the sort is not
        repeated for each new producer. The order follows from what a snapshot stores, so that a replay removes the same
        producers."""
        removable = sorted(self.entries.ages())
        removed = removable[: len(removable) - PRODUCERS_LIMIT * 7 // 8]
        self.entries.remove([producer_id for _, _, producer_id in removed])
