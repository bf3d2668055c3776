"""The 61-byte header of a record batch (magic 2), read and patched in place without parsing its records.

Base offset and leader epoch lie outside the checksum, so assigning them is cheap; other changes need a new checksum.
"""

import struct
from typing import NamedTuple

from odradek.protocol.checksum import crc32c
from odradek.protocol.compression import Compression
from odradek.protocol.malformed import MalformedMessage
from odradek.protocol.varints import Bytes

HEADER_SIZE_BYTES = 61
CURRENT_MAGIC = 2
# The batch length does not count the base offset and itself.
LENGTH_END_POSITION = 12
# The checksum covers the batch from the attributes to the end.
CHECKSUM_POSITION = 17
ATTRIBUTES_POSITION = 21

COMPRESSION_MASK = 0x07
LOG_APPEND_TIME_FLAG = 0x08
TRANSACTIONAL_FLAG = 0x10
CONTROL_FLAG = 0x20
# The base timestamp is the delete horizon: tombstones and markers may be removed from then on (KIP-534).
DELETE_HORIZON_FLAG = 0x40

_HEADER = struct.Struct(">qiibIhiqqqhii")
unpack_batch_header = _HEADER.unpack_from
_pack_base_offset = struct.Struct(">q").pack_into
_pack_leader_epoch = struct.Struct(">i").pack_into
_pack_checksum = struct.Struct(">I").pack_into
_pack_timestamp = struct.Struct(">q").pack_into
_new_tuple = tuple.__new__


class BatchHeader(NamedTuple):
    base_offset: int
    batch_length: int
    partition_leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int

    @property
    def size_bytes(self) -> int:
        return LENGTH_END_POSITION + self.batch_length

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def compression(self) -> Compression:
        """The codec; raises MalformedMessage for the three numbers without one."""
        try:
            return Compression(self.attributes & COMPRESSION_MASK)
        except ValueError:
            raise MalformedMessage(f"unknown compression codec {self.attributes & COMPRESSION_MASK}") from None

    @property
    def is_transactional(self) -> bool:
        return bool(self.attributes & TRANSACTIONAL_FLAG)

    @property
    def is_control(self) -> bool:
        return bool(self.attributes & CONTROL_FLAG)

    @property
    def uses_log_append_time(self) -> bool:
        return bool(self.attributes & LOG_APPEND_TIME_FLAG)

    @property
    def has_doubtful_timestamps(self) -> bool:
        """Whether the header contradicts itself, or records may lack timestamps. librdkafka writes a maximum of 0 if no
        record has one."""
        return not 0 < self.base_timestamp <= self.max_timestamp

    @property
    def delete_horizon_ms(self) -> int | None:
        """The time from which tombstones and markers may be removed; set by the first compaction that kept them."""
        return self.base_timestamp if self.attributes & DELETE_HORIZON_FLAG else None


def read_batch_header(buffer: Bytes, position: int = 0) -> BatchHeader:
    """Reads the header without validation; raises MalformedMessage if fewer bytes than a header remain."""
    try:
        return _new_tuple(BatchHeader, unpack_batch_header(buffer, position))
    except struct.error:
        raise MalformedMessage(f"{len(buffer) - position} bytes are too few for a batch header") from None


def has_valid_checksum(buffer: Bytes, position: int, header: BatchHeader) -> bool:
    """Whether the checksum matches; False if the batch is shorter than its header or longer than the buffer."""
    end = position + LENGTH_END_POSITION + header.batch_length
    if end > len(buffer) or end < position + HEADER_SIZE_BYTES:
        return False
    return crc32c(memoryview(buffer)[position + ATTRIBUTES_POSITION : end]) == header.crc


def assign_offset(buffer: bytearray | memoryview, position: int, base_offset: int, leader_epoch: int) -> None:
    _pack_base_offset(buffer, position, base_offset)
    _pack_leader_epoch(buffer, position + 12, leader_epoch)


def set_append_time(buffer: bytearray | memoryview, position: int, timestamp_ms: int) -> None:
    """Gives all records of the batch this timestamp: with the flag set, readers use the batch's maximum timestamp."""
    buffer[position + ATTRIBUTES_POSITION + 1] |= LOG_APPEND_TIME_FLAG
    set_max_timestamp(buffer, position, timestamp_ms)


def set_max_timestamp(buffer: bytearray | memoryview, position: int, timestamp_ms: int) -> None:
    _pack_timestamp(buffer, position + 35, timestamp_ms)
    _write_checksum(
        buffer, position, position + LENGTH_END_POSITION + int.from_bytes(buffer[position + 8 : position + 12], "big")
    )


def clear_append_time(buffer: bytearray | memoryview, position: int) -> None:
    """Clears the flag, so that readers use the records' own timestamps."""
    buffer[position + ATTRIBUTES_POSITION + 1] &= ~LOG_APPEND_TIME_FLAG
    _write_checksum(
        buffer, position, position + LENGTH_END_POSITION + int.from_bytes(buffer[position + 8 : position + 12], "big")
    )


def replace_records(header: BatchHeader, records: Bytes, compression: Compression) -> bytearray:
    """The batch with other `records`, which are already compressed with `compression`, and a new checksum."""
    attributes = header.attributes & ~COMPRESSION_MASK | compression
    return write_batch(
        header._replace(attributes=attributes, batch_length=HEADER_SIZE_BYTES - LENGTH_END_POSITION + len(records)),
        records,
    )


def write_batch(header: BatchHeader, records: Bytes) -> bytearray:
    """Encodes a batch; the checksum is computed, and the header's is ignored."""
    batch = bytearray(HEADER_SIZE_BYTES + len(records))
    _HEADER.pack_into(batch, 0, *header)
    batch[HEADER_SIZE_BYTES:] = records
    _write_checksum(batch, 0, len(batch))
    return batch


def _write_checksum(buffer: bytearray | memoryview, position: int, end: int) -> None:
    checksum = crc32c(memoryview(buffer)[position + ATTRIBUTES_POSITION : end])
    _pack_checksum(buffer, position + CHECKSUM_POSITION, checksum)
