"""Batches that a coordinator writes: one producer, one timestamp, no headers. The same bytes as `build_batch` makes of
such records, in a fraction of its time (a test compares them), because every commit of an offset is such a batch."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, NamedTuple

from odradek.protocol.batch import CURRENT_MAGIC, HEADER_SIZE_BYTES, LENGTH_END_POSITION, TRANSACTIONAL_FLAG
from odradek.protocol.checksum import crc32c
from odradek.protocol.compression import Compression, compress
from odradek.protocol.sentinels import NO_EPOCH, NO_PRODUCER_EPOCH, NO_PRODUCER_ID, NO_SEQUENCE
from odradek.protocol.varints import encode_varlong

if TYPE_CHECKING:
    from collections.abc import Sequence

    from odradek.coordinator.runtime.coordinator_record import CoordinatorRecord

# Base offset, length, leader epoch, magic, checksum; then what the checksum covers.
_pack_prefix = struct.Struct(">qiibI").pack
_pack_checked = struct.Struct(">hiqqqhii").pack
_COVERED_LENGTH_BYTES = HEADER_SIZE_BYTES - LENGTH_END_POSITION

_SHORT_BYTES = 1024  # the lengths of most keys, values and records
_SHORT_LENGTHS = [encode_varlong(length) for length in range(_SHORT_BYTES)]
_NULL = encode_varlong(-1)


class BatchProducer(NamedTuple):
    """The producer in whose transaction a coordinator writes."""

    producer_id: int
    epoch: int


NO_PRODUCER = BatchProducer(NO_PRODUCER_ID, NO_PRODUCER_EPOCH)


def build_coordinator_batch(
    records: Sequence[CoordinatorRecord],
    timestamp_ms: int,
    compression: Compression = Compression.NONE,
    producer: BatchProducer = NO_PRODUCER,
) -> bytearray:
    """At least one record. Base offset and leader epoch are left to the log."""
    count = len(records)
    if count == 1:
        section = _encode_record(0, *records[0])
    else:
        section = b"".join([_encode_record(delta, key, value) for delta, (key, value) in enumerate(records)])
    if compression is not Compression.NONE:
        section = compress(compression, section, None)
    checked = _pack_checked(
        compression if producer is NO_PRODUCER else compression | TRANSACTIONAL_FLAG,
        count - 1,
        timestamp_ms,
        timestamp_ms,
        producer.producer_id,
        producer.epoch,
        NO_SEQUENCE,
        count,
    )
    checked += section
    prefix = _pack_prefix(0, _COVERED_LENGTH_BYTES + len(section), NO_EPOCH, CURRENT_MAGIC, crc32c(checked))
    return bytearray(prefix + checked)


def _encode_record(offset_delta: int, key: bytes, value: bytes | None) -> bytes:
    """Attributes and timestamp delta are zero, and so is the number of headers."""
    lengths = _SHORT_LENGTHS
    key_bytes = len(key)
    if value is not None and (value_bytes := len(value)) < _SHORT_BYTES > key_bytes and offset_delta < _SHORT_BYTES:
        body = b"\0\0%b%b%b%b%b\0" % (lengths[offset_delta], lengths[key_bytes], key, lengths[value_bytes], value)
    else:
        body = b"\0\0%b%b%b%b\0" % (
            _length(offset_delta),
            _length(key_bytes),
            key,
            _NULL if value is None else _length(len(value)) + value,
        )
    body_bytes = len(body)
    return (lengths[body_bytes] if body_bytes < _SHORT_BYTES else encode_varlong(body_bytes)) + body


def _length(number: int) -> bytes:
    return _SHORT_LENGTHS[number] if number < _SHORT_BYTES else encode_varlong(number)
