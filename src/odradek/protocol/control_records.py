"""Control batches: what the broker itself writes into a partition, here the end of a transaction (KIP-98).

A control batch holds one record. Its key is a version and the type of the record, its value is a version and, for the
end of a transaction, the epoch of the transaction coordinator that decided it.
"""

import enum
import struct
from typing import NamedTuple

from odradek.protocol.batch import (
    CONTROL_FLAG,
    CURRENT_MAGIC,
    HEADER_SIZE_BYTES,
    LENGTH_END_POSITION,
    TRANSACTIONAL_FLAG,
    BatchHeader,
)
from odradek.protocol.checksum import crc32c
from odradek.protocol.malformed import MalformedMessage
from odradek.protocol.records import read_records
from odradek.protocol.sentinels import NO_EPOCH, NO_SEQUENCE
from odradek.protocol.varints import Bytes

LARGEST_CONTROL_BATCH_BYTES = 4096  # one record of a few bytes; a larger batch is not read

_VERSION = 0
_KEY = struct.Struct(">hh")
_VALUE = struct.Struct(">hi")

# A marker as a whole, because every commit writes one to each of its partitions. Base offset, length, leader epoch,
# magic and checksum; then what the checksum covers: the rest of the header; length, attributes and deltas of the record
# and the length of its key; the key; the length of the value; the value; the number of headers.
_pack_prefix = struct.Struct(">qiibI").pack
_pack_checked = struct.Struct(">hiqqqhii 5s hh 1s hi 1s").pack
_RECORD_START = b"\x20\x00\x00\x00\x08"
_VALUE_LENGTH = b"\x0c"
_NO_HEADERS = b"\x00"
_MARKER_BYTES = HEADER_SIZE_BYTES + len(_RECORD_START + _VALUE_LENGTH + _NO_HEADERS) + _KEY.size + _VALUE.size


class ControlRecordType(enum.IntEnum):
    ABORT = 0
    COMMIT = 1


class EndTransactionMarker(NamedTuple):
    producer_id: int
    producer_epoch: int
    type: ControlRecordType
    coordinator_epoch: int


def build_end_transaction_marker(
    marker: EndTransactionMarker, timestamp_ms: int, *, base_offset: int = 0, leader_epoch: int = NO_EPOCH
) -> bytearray:
    """The same bytes as `build_batch` makes of its record, in a fraction of the time (a test compares them)."""
    producer_id, producer_epoch, type_, coordinator_epoch = marker
    checked = _pack_checked(
        TRANSACTIONAL_FLAG | CONTROL_FLAG,
        0,  # the delta of the last offset
        timestamp_ms,
        timestamp_ms,
        producer_id,
        producer_epoch,
        NO_SEQUENCE,
        1,  # record
        _RECORD_START,
        _VERSION,
        type_,
        _VALUE_LENGTH,
        _VERSION,
        coordinator_epoch,
        _NO_HEADERS,
    )
    length = _MARKER_BYTES - LENGTH_END_POSITION
    return bytearray(_pack_prefix(base_offset, length, leader_epoch, CURRENT_MAGIC, crc32c(checked)) + checked)


def read_end_transaction_marker(batch: Bytes, header: BatchHeader) -> EndTransactionMarker | None:
    """None for a control batch of another type, and for one that compaction has emptied. A version above 0 may only
    append fields, so the known ones are read from it. Raises MalformedMessage."""
    if header.record_count == 0:
        return None
    record = next(read_records(batch, LARGEST_CONTROL_BATCH_BYTES))
    key, value = record.key or b"", record.value or b""
    if len(key) < _KEY.size:
        raise MalformedMessage(f"a control record has a key of {len(key)} bytes")
    _, type_number = _KEY.unpack_from(key)
    if type_number not in (ControlRecordType.ABORT, ControlRecordType.COMMIT):
        return None
    if len(value) < _VALUE.size:
        raise MalformedMessage(f"an end-transaction marker has a value of {len(value)} bytes")
    _, coordinator_epoch = _VALUE.unpack_from(value)
    return EndTransactionMarker(
        header.producer_id, header.producer_epoch, ControlRecordType(type_number), coordinator_epoch
    )
