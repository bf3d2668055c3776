"""What is known of the producers of a partition, for DescribeProducers and for the search of hanging transactions."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from odradek.protocol.sentinels import NO_SEQUENCE

if TYPE_CHECKING:
    from odradek.log.producer_state import ProducerState


class OpenTransaction(NamedTuple):
    """`coordinator_epoch` is that of the producer's last marker, -1 before the first."""

    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    first_offset: int
    last_timestamp: int


class ProducerDescription(NamedTuple):
    """`transaction_first_offset` is -1 when no transaction is open, `last_sequence` when no batch is known."""

    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_timestamp: int
    coordinator_epoch: int
    transaction_first_offset: int


def list_open_transactions(producers: ProducerState) -> list[OpenTransaction]:
    return [
        OpenTransaction(producer_id, entry.epoch, entry.coordinator_epoch, first_offset, entry.last_timestamp)
        for producer_id, first_offset in producers.transactions.open.items()
        for entry in [producers.entries[producer_id]]
    ]


def describe_producers(producers: ProducerState) -> list[ProducerDescription]:
    return [
        ProducerDescription(
            producer_id,
            entry.epoch,
            entry.batches[-1].last_sequence if entry.batches else NO_SEQUENCE,
            entry.last_timestamp,
            entry.coordinator_epoch,
            entry.current_txn_first_offset,
        )
        for producer_id, entry in producers.entries.items()
    ]
