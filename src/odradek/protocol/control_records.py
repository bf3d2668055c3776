"""Control batches: what the broker itself writes into a partition, here the end of a transaction (KIP-98).

A control batch holds one record. Its key is a version and the type of the record, its value is a version and, for the
end of a transaction, the epoch of the transaction coordinator that decided it.
"""

import enum
import struct
from typing import NamedTuple

from odradek.protocol.batch import BatchHeader
from odradek.protocol.malformed import MalformedMessage
from odradek.protocol.records import Record, build_batch, read_records
from odradek.protocol.sentinels import NO_EPOCH
from odradek.protocol.varints import Bytes

LARGEST_CONTROL_BATCH_BYTES = 4096  # one record of a few bytes; a larger batch is not read

_VERSION = 0
_KEY = struct.Struct(">hh")
_VALUE = struct.Struct(">hi")


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
    key = _KEY.pack(_VERSION, marker.type)
    value = _VALUE.pack(_VERSION, marker.coordinator_epoch)
    return build_batch(
        [Record(base_offset, timestamp_ms, key, value)],
        base_offset=base_offset,
        leader_epoch=leader_epoch,
        producer_id=marker.producer_id,
        producer_epoch=marker.producer_epoch,
        transactional=True,
        control=True,
    )


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
