"""Record batches by hand (magic 2), so that tests can send what a client library never would."""

import struct
from collections.abc import Sequence
from dataclasses import dataclass

import crc32c

HEAD = struct.Struct(">qiibI")  # base offset, length, leader epoch, magic, CRC
BODY = struct.Struct(">hiqqqhii")  # what the CRC covers, up to the records: attributes … record count
EPOCH_MS = 1_600_000_000_000


def _varint(value: int) -> bytes:
    zigzag = (value << 1) ^ (value >> 63)
    encoded = bytearray()
    while zigzag > 0x7F:
        encoded.append(zigzag & 0x7F | 0x80)
        zigzag >>= 7
    encoded.append(zigzag)
    return bytes(encoded)


def _field(value: bytes | None) -> bytes:
    return _varint(-1) if value is None else _varint(len(value)) + value


def _record(offset_delta: int, value: bytes | None, key: bytes | None, timestamp_delta: int) -> bytes:
    content = b"\0" + _varint(timestamp_delta) + _varint(offset_delta) + _field(key) + _field(value) + _varint(0)
    return _varint(len(content)) + content


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Fields of a batch; `encode` computes the rest. A field that is set to what it should not be makes a bad batch."""

    values: Sequence[bytes | None] = (b"value",)
    key: bytes | None = b"key"
    producer_id: int = -1
    producer_epoch: int = -1
    base_sequence: int = -1
    timestamp_ms: int = EPOCH_MS
    max_timestamp_ms: int | None = None
    attributes: int = 0
    magic: int = 2
    base_offset: int = 0
    leader_epoch: int = -1
    records: bytes | None = None  # instead of the encoded values: compressed ones, or rubbish
    record_count: int | None = None
    last_offset_delta: int | None = None
    crc_error: int = 0
    length_error: int = 0

    def encode(self) -> bytes:
        records = self.records
        if records is None:
            records = b"".join(_record(index, each, self.key, index) for index, each in enumerate(self.values))
        count = len(self.values)
        body = BODY.pack(
            self.attributes,
            count - 1 if self.last_offset_delta is None else self.last_offset_delta,
            self.timestamp_ms,
            self.timestamp_ms + max(0, count - 1) if self.max_timestamp_ms is None else self.max_timestamp_ms,
            self.producer_id,
            self.producer_epoch,
            self.base_sequence,
            count if self.record_count is None else self.record_count,
        )
        crc = crc32c.crc32c(body + records) ^ self.crc_error
        length = HEAD.size - 12 + len(body) + len(records) + self.length_error
        return HEAD.pack(self.base_offset, length, self.leader_epoch, self.magic, crc) + body + records


def plain_records(values: Sequence[bytes | None], key: bytes | None = b"key") -> bytes:
    """The records part of a batch, for tests that compress it themselves."""
    return b"".join(_record(index, each, key, index) for index, each in enumerate(values))
