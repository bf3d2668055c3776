"""Kafka's `.snapshot` file (version 1): the state of every producer at the offset in the file's name."""

import struct
from collections.abc import Iterable, Iterator

from odradek.log.producer_entry import SEQUENCE_MASK, ProducerBatch, ProducerEntry, ProducerSummary
from odradek.protocol.checksum import crc32c
from odradek.protocol.malformed import MalformedMessage
from odradek.protocol.sentinels import NO_EPOCH, NO_OFFSET

SNAPSHOT_SUFFIX = ".snapshot"
_VERSION = 1

_PREFIX = struct.Struct(">hI")  # version, checksum of everything after it
_COUNT = struct.Struct(">i")
_ENTRY = struct.Struct(">qhiqiqiq")  # the fields of a ProducerSummary


def encode_snapshot(producers: Iterable[ProducerSummary]) -> bytes:
    parts = [b""]
    parts += [_ENTRY.pack(*each) for each in producers]
    parts[0] = _COUNT.pack(len(parts) - 1)
    body = b"".join(parts)
    return _PREFIX.pack(_VERSION, crc32c(body)) + body


def decode_snapshot(data: bytes, end_offset: int | None = None) -> Iterator[tuple[int, ProducerEntry]]:
    """Raises MalformedMessage, before the first entry, for data that is torn, no snapshot, or of another log: with
    offsets from `end_offset` on, its own."""
    if len(data) < _PREFIX.size + _COUNT.size:
        raise MalformedMessage(f"{len(data)} bytes are no producer snapshot")
    version, checksum = _PREFIX.unpack_from(data)
    body = memoryview(data)[_PREFIX.size :]
    if version != _VERSION or crc32c(body) != checksum:
        raise MalformedMessage(f"producer snapshot of version {version} with a wrong checksum")
    (count,) = _COUNT.unpack_from(body)
    if count * _ENTRY.size != len(body) - _COUNT.size:
        raise MalformedMessage(f"{count} producers in {len(body)} bytes")
    entries = body[_COUNT.size :]
    for producer_id, _, _, offset, _, _, _, txn_offset in _ENTRY.iter_unpack(entries) if end_offset is not None else ():
        if max(offset, txn_offset) >= end_offset:
            raise MalformedMessage(f"it has offset {max(offset, txn_offset)} of producer {producer_id}")
    return _decode_entries(entries)


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
