"""Kafka's `.snapshot` file (version 1): the state of every producer at the offset in the file's name."""

import struct
from collections.abc import Iterable, Iterator

from crc32c import crc32c

from odradek.log.producer_state import (
    SEQUENCE_MASK,
    ProducerBatch,
    ProducerEntry,
)
from odradek.protocol.malformed import MalformedMessage
from odradek.protocol.sentinels import NO_EPOCH, NO_OFFSET, NO_SEQUENCE

SNAPSHOT_SUFFIX = ".snapshot"
_VERSION = 1

_PREFIX = struct.Struct(">hI")  # version, checksum of everything after it
_COUNT = struct.Struct(">i")
# producer id, epoch, last sequence, last offset, offset delta, timestamp, coordinator epoch, first offset of the
# transaction in progress
_ENTRY = struct.Struct(">qhiqiqiq")


def encode_snapshot(entries: Iterable[tuple[int, ProducerEntry]]) -> bytes:
    parts = [b""]
    for producer_id, entry in entries:
        if entry.batches:
            last = entry.batches[-1]
            sequence, offset, delta = last.last_sequence, last.last_offset, last.offset_delta
        else:
            sequence, offset, delta = NO_SEQUENCE, NO_OFFSET, 0
        parts.append(
            _ENTRY.pack(
                producer_id,
                entry.epoch,
                sequence,
                offset,
                delta,
                entry.last_timestamp,
                entry.coordinator_epoch,
                entry.current_txn_first_offset,
            )
        )
    parts[0] = _COUNT.pack(len(parts) - 1)
    body = b"".join(parts)
    return _PREFIX.pack(_VERSION, crc32c(body)) + body


def decode_snapshot(data: bytes) -> Iterator[tuple[int, ProducerEntry]]:
    """Raises MalformedMessage, before the first entry, for data that is torn or no snapshot."""
    if len(data) < _PREFIX.size + _COUNT.size:
        raise MalformedMessage(f"{len(data)} bytes are no producer snapshot")
    version, checksum = _PREFIX.unpack_from(data)
    body = memoryview(data)[_PREFIX.size :]
    if version != _VERSION or crc32c(body) != checksum:
        raise MalformedMessage(f"producer snapshot of version {version} with a wrong checksum")
    (count,) = _COUNT.unpack_from(body)
    if count * _ENTRY.size != len(body) - _COUNT.size:
        raise MalformedMessage(f"{count} producers in {len(body)} bytes")
    return _decode_entries(body[_COUNT.size :])


def _decode_entries(body: memoryview) -> Iterator[tuple[int, ProducerEntry]]:
    for producer_id, epoch, sequence, offset, delta, timestamp, coordinator_epoch, txn_offset in _ENTRY.iter_unpack(
        body
    ):
        entry = ProducerEntry(epoch)
        if offset >= 0:
            entry.batches.append(ProducerBatch(sequence, offset, delta, timestamp))
            entry.next_sequence = (sequence + 1) & SEQUENCE_MASK
        entry.last_timestamp = timestamp
        entry.coordinator_epoch = coordinator_epoch
        entry.current_txn_first_offset = txn_offset
        entry.uses_transactions = coordinator_epoch != NO_EPOCH or txn_offset != NO_OFFSET
        yield producer_id, entry
