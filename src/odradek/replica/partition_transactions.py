"""The transactions of a partition: its last stable offset, verifications (KIP-890), and what is known of its producers,
for DescribeProducers and to find hanging transactions."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

from odradek.replica.waiting_requests import size_between

if TYPE_CHECKING:
    from odradek.log.partition_log import PartitionLog
    from odradek.log.transaction_verification import VerificationGuard
    from odradek.protocol.errors import ErrorCode
    from odradek.replica.waiting_requests import WaitingFetch


class ProducerDescription(NamedTuple):
    """`last_sequence` is -1 if no batch is known, `coordinator_epoch` before the producer's first marker,
    `transaction_first_offset` if no transaction is open."""

    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_timestamp: int
    coordinator_epoch: int
    transaction_first_offset: int


class LogPartition(Protocol):
    """The part of a partition that is used here."""

    log: PartitionLog
    high_watermark: int
    is_leader: bool

    @property
    def absence(self) -> ErrorCode: ...

    @property
    def waiting_fetches(self) -> dict[WaitingFetch, None]: ...


class PartitionTransactions:
    """The transactions of a partition, for the coordinator and the handlers. Owned by the partition."""

    __slots__ = ("_partition",)

    def __init__(self, partition: LogPartition) -> None:
        self._partition = partition

    def last_stable_offset_at(self, high_watermark: int) -> int:
        """The last stable offset with this high watermark, which another thread may be moving."""
        log = self._partition.log
        first_unstable_offset = log.producers.transactions.first_unstable_offset
        if first_unstable_offset >= high_watermark:
            return high_watermark
        return max(first_unstable_offset, log.log_start_offset)  # the begin of a transaction may be deleted

    def advance_last_stable_offset(self, high_watermark_before: int) -> None:
        """The high watermark has moved while there are transactions. Only fetches that may read what was committed, or
        what is stable, are woken."""
        partition, log = self._partition, self._partition.log
        if not partition.waiting_fetches:
            log.producers.transactions.commit_before(partition.high_watermark)
            return
        before = self.last_stable_offset_at(high_watermark_before)
        log.producers.transactions.commit_before(partition.high_watermark)
        stable_offset = self.last_stable_offset_at(partition.high_watermark)
        for fetch in tuple(partition.waiting_fetches):
            if not fetch.is_committed_only:
                fetch.count_down(size_between(log, high_watermark_before, partition.high_watermark))
            elif stable_offset > before:
                fetch.count_down(size_between(log, before, stable_offset))

    def begin_verification(
        self, producer_id: int, producer_epoch: int, sequence: int, *, supports_epoch_bump: bool, now_ms: int
    ) -> VerificationGuard | ErrorCode | None:
        """See `ProducerState.begin_verification`. `Partition.append` takes the guard after the coordinator's
        confirmation, and refuses it with INVALID_TXN_STATE if a marker or a batch of the producer was appended in
        between."""
        if not self._partition.is_leader:
            return self._partition.absence
        return self._partition.log.producers.begin_verification(
            producer_id, producer_epoch, sequence, supports_epoch_bump=supports_epoch_bump, now_ms=now_ms
        )

    def describe_producers(self) -> list[ProducerDescription]:
        return [
            ProducerDescription(
                each.producer_id,
                each.epoch,
                each.last_sequence,
                each.last_timestamp,
                each.coordinator_epoch,
                each.current_txn_first_offset,
            )
            for each in self._partition.log.producers.entries.summaries()
        ]
