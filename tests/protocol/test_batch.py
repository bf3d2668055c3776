"""Batch headers are read and patched in place, checksums hold, and aiokafka agrees with every field."""

import struct

import pytest
from aiokafka.record.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder
from hypothesis import given
from hypothesis import strategies as st

from odradek.protocol.batch import (
    HEADER_SIZE_BYTES,
    assign_offset,
    has_valid_checksum,
    read_batch_header,
    replace_records,
    set_append_time,
)
from odradek.protocol.compression import Compression, compress, decompress
from odradek.protocol.malformed import MalformedMessage
from odradek.protocol.records import Record, build_batch, read_records

RECORDS = [Record(offset, 1_000 + offset, b"key", b"value") for offset in range(5)]


def their_batch(compression: Compression = Compression.NONE, transactional: bool = False) -> bytearray:
    builder = DefaultRecordBatchBuilder(
        magic=2,
        compression_type=int(compression),
        is_transactional=transactional,
        producer_id=7,
        producer_epoch=8,
        base_sequence=9,
        batch_size=1 << 20,
    )
    for offset in range(5):
        builder.append(offset, 1_000 + offset, b"key", b"value" * 50, [])
    return bytearray(builder.build())


@pytest.mark.parametrize("transactional", [False, True])
@pytest.mark.parametrize("compression", Compression)
def test_the_header_of_another_implementations_batch_is_read(compression: Compression, transactional: bool) -> None:
    batch = their_batch(compression, transactional)
    header = read_batch_header(batch)
    assert header.size_bytes == len(batch)
    assert header.compression is compression
    assert (header.is_transactional, header.is_control, header.uses_log_append_time) == (transactional, False, False)
    assert (header.base_offset, header.last_offset, header.last_offset_delta, header.record_count) == (0, 4, 4, 5)
    assert (header.base_timestamp, header.max_timestamp) == (1_000, 1_004)
    assert (header.producer_id, header.producer_epoch, header.base_sequence, header.magic) == (7, 8, 9, 2)
    assert has_valid_checksum(batch, 0, header)


def test_a_batch_may_stand_anywhere_in_a_buffer() -> None:
    batch = their_batch()
    buffer = bytearray(b"before") + batch + bytearray(b"after")
    header = read_batch_header(memoryview(buffer), 6)
    assert has_valid_checksum(memoryview(buffer), 6, header)
    assign_offset(buffer, 6, 55, 3)
    set_append_time(memoryview(buffer), 6, 9_999)
    moved = read_batch_header(buffer, 6)
    assert (moved.base_offset, moved.partition_leader_epoch, moved.max_timestamp) == (55, 3, 9_999)
    assert has_valid_checksum(buffer, 6, moved)
    assert buffer.startswith(b"before")
    assert buffer.endswith(b"after")


def test_offset_and_epoch_lie_outside_the_checksum() -> None:
    batch = their_batch()
    checksum = read_batch_header(batch).crc
    assign_offset(batch, 0, 2**62, 2**31 - 1)
    header = read_batch_header(batch)
    assert (header.base_offset, header.partition_leader_epoch, header.crc) == (2**62, 2**31 - 1, checksum)
    theirs = DefaultRecordBatch(bytes(batch))
    assert theirs.validate_crc()
    assert theirs.base_offset == 2**62


def test_append_time_replaces_the_timestamps_of_all_records() -> None:
    batch = their_batch(Compression.ZSTD)
    set_append_time(batch, 0, 123_456_789)
    header = read_batch_header(batch)
    assert header.uses_log_append_time
    assert header.compression is Compression.ZSTD
    assert has_valid_checksum(batch, 0, header)
    theirs = DefaultRecordBatch(bytes(batch))
    assert theirs.validate_crc()
    assert (theirs.timestamp_type, theirs.max_timestamp) == (1, 123_456_789)
    assert {record.timestamp for record in theirs} == {123_456_789}
    assert {record.timestamp for record in read_records(batch, 1 << 20)} == {123_456_789}


@given(st.data())
def test_a_changed_byte_fails_the_checksum(data: st.DataObject) -> None:
    batch = build_batch(RECORDS)
    place = data.draw(st.integers(17, len(batch) - 1))
    batch[place] ^= data.draw(st.integers(1, 255))
    assert not has_valid_checksum(batch, 0, read_batch_header(batch))


@pytest.mark.parametrize("length", [-(2**31), -1, 0, 48, 10_000, 2**31 - 1])
def test_a_length_that_the_bytes_do_not_bear_out_fails_the_checksum(length: int) -> None:
    batch = build_batch(RECORDS)
    struct.pack_into(">i", batch, 8, length)
    assert not has_valid_checksum(batch, 0, read_batch_header(batch))


@pytest.mark.parametrize("size", [0, 1, HEADER_SIZE_BYTES - 1])
def test_too_few_bytes_are_no_header(size: int) -> None:
    with pytest.raises(MalformedMessage):
        read_batch_header(bytes(size))
    with pytest.raises(MalformedMessage):
        read_batch_header(bytes(100), 100 - size)


@pytest.mark.parametrize("number", [5, 6, 7])
def test_a_codec_that_does_not_exist_is_malformed(number: int) -> None:
    batch = build_batch(RECORDS)
    batch[22] |= number
    with pytest.raises(MalformedMessage, match="unknown compression codec"):
        _ = read_batch_header(batch).compression


@pytest.mark.parametrize("compression", Compression)
def test_records_are_replaced_by_the_same_in_another_codec(compression: Compression) -> None:
    batch = build_batch(RECORDS, base_offset=0, compression=Compression.GZIP, producer_id=4, leader_epoch=6)
    header = read_batch_header(batch)
    content = decompress(header.compression, batch[HEADER_SIZE_BYTES:], 1 << 20)
    replaced = replace_records(header, compress(compression, content), compression)
    changed = read_batch_header(replaced)
    assert changed.size_bytes == len(replaced)
    assert changed.compression is compression
    assert has_valid_checksum(replaced, 0, changed)
    assert changed._replace(batch_length=0, crc=0, attributes=0) == header._replace(batch_length=0, crc=0, attributes=0)
    assert list(read_records(replaced, 1 << 20)) == RECORDS
