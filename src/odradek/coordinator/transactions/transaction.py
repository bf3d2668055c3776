"""One transactional id: its producer, the state of its transaction, and the partitions that take part. Pure."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, NamedTuple

from odradek.protocol.sentinels import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, NO_TIMESTAMP

if TYPE_CHECKING:
    from odradek.protocol.topic_partition import TopicPartition

LARGEST_EPOCH = 2**15 - 1
# The largest epoch of a producer; the one above it is left for the coordinator, which ends the last transaction by it.
LAST_PRODUCER_EPOCH = LARGEST_EPOCH - 1


class TransactionState(enum.IntEnum):
    """Kafka's numbers, as they stand in records. DEAD and PREPARE_EPOCH_FENCE are never written."""

    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    DEAD = 6
    PREPARE_EPOCH_FENCE = 7

    @property
    def label(self) -> str:
        """Kafka's name: PrepareCommit."""
        return "".join(word.capitalize() for word in self.name.split("_"))

    @property
    def is_ending(self) -> bool:
        """The outcome is decided, and markers are being written."""
        return self in (TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT)

    @property
    def is_complete(self) -> bool:
        """All markers are written, and no transaction has begun since."""
        return self in (TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT)


STATES_BY_LABEL = {state.label: state for state in TransactionState}


class TransactionVersion(enum.IntEnum):
    """The protocol that a client uses. With V2 (KIP-890) the epoch rises at the end of every transaction, and
    partitions join a transaction by being written to."""

    V0 = 0
    V1 = 1
    V2 = 2

    @property
    def raises_epoch(self) -> bool:
        return self >= TransactionVersion.V2


class ProducerIdentity(NamedTuple):
    producer_id: int
    epoch: int


class Transaction(NamedTuple):
    """A new value for each change. `last_epoch` is the epoch before the present one, of the same client; Kafka's record
    does not have it, so it is unknown after a change of coordinator."""

    producer_id: int
    timeout_ms: int
    last_update_ms: int
    producer_epoch: int = NO_PRODUCER_EPOCH
    state: TransactionState = TransactionState.EMPTY
    partitions: frozenset[TopicPartition] = frozenset()
    start_ms: int = NO_TIMESTAMP
    last_epoch: int = NO_PRODUCER_EPOCH
    previous_producer_id: int = NO_PRODUCER_ID
    next_producer_id: int = NO_PRODUCER_ID  # the producer id after the markers, when the epochs of this one are used up
    client_version: TransactionVersion = TransactionVersion.V0

    @property
    def is_epoch_exhausted(self) -> bool:
        return self.producer_epoch >= LAST_PRODUCER_EPOCH

    @property
    def deadline_ms(self) -> int:
        return self.start_ms + self.timeout_ms
