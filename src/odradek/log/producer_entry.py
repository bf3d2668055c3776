"""The state of one idempotent or transactional producer in one partition, and what a snapshot stores of it."""

from typing import NamedTuple

from odradek.protocol.sentinels import NO_EPOCH, NO_OFFSET, NO_SEQUENCE

SEQUENCE_MASK = 2**31 - 1  # sequence numbers go on at 0 after the largest int32


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


class ProducerSummary(NamedTuple):
    """What a snapshot stores, in its order. The sequence and offsets are those of the last batch."""

    producer_id: int
    epoch: int
    last_sequence: int
    last_offset: int
    offset_delta: int
    last_timestamp: int
    coordinator_epoch: int
    current_txn_first_offset: int


class ProducerEntry:
    __slots__ = (
        "batches",
        "coordinator_epoch",
        "current_txn_first_offset",
        "epoch",
        "idle_checks",
        "last_timestamp",
        "next_sequence",
        "uses_transactions",
    )

    def __init__(self, epoch: int) -> None:
        self.epoch = epoch
        self.batches: list[ProducerBatch] = []  # the oldest first
        self.next_sequence = 0
        self.last_timestamp = -1
        self.coordinator_epoch = NO_EPOCH  # of the last end-transaction marker
        self.current_txn_first_offset = NO_OFFSET  # of the open transaction
        self.idle_checks = 0  # since its last batch or marker, of `producer_limits`; not stored
        self.uses_transactions = False  # has written or begun to verify one; decides only how its batches are checked

    @property
    def last_data_offset(self) -> int:
        """The end of the last batch; NO_OFFSET if a marker has begun the epoch: it has no batch to send again then."""
        return self.batches[-1].last_offset if self.batches else NO_OFFSET

    def summary(self, producer_id: int) -> ProducerSummary:
        sequence, offset, delta, _ = self.batches[-1] if self.batches else (NO_SEQUENCE, NO_OFFSET, 0, 0)
        return ProducerSummary(
            producer_id,
            self.epoch,
            sequence,
            offset,
            delta,
            self.last_timestamp,
            self.coordinator_epoch,
            self.current_txn_first_offset,
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ProducerEntry):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in self.__slots__ if name != "idle_checks")

    __hash__ = None  # type: ignore[assignment]  # values that change have no hash

    def __repr__(self) -> str:
        return f"ProducerEntry(epoch={self.epoch}, batches={self.batches})"
