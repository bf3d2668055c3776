"""Records are read and built as aiokafka and kafka-python do, and a batch whose parts do not add up is malformed."""

import contextlib
import struct
from typing import Any

import aiokafka.record.default_records as aiokafka_records
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odradek.protocol.batch import (
    HEADER_SIZE_BYTES,
    clear_append_time,
    has_valid_checksum,
    read_batch_header,
    replace_records,
)
from odradek.protocol.compression import Compression
from odradek.protocol.malformed import MalformedMessage
from odradek.protocol.record_checks import (
    MOST_HEADERS_CHECKED,
    begins_with_record,
    check_records,
    every_record_has_a_key,
)
from odradek.protocol.records import Record, build_batch, read_records, read_times
from odradek.protocol.varints import encode_varlong
from tests.example_counts import examples
from tests.protocol import kafka_python

LIMIT = 1 << 20
NULLABLE = st.none() | st.binary(max_size=20) | st.integers(60, 70).map(bytes)
VALUES = st.tuples(
    st.integers(0, 2**45),
    NULLABLE,
    NULLABLE,
    st.lists(st.tuples(st.text(max_size=8), st.none() | st.binary(max_size=8)), max_size=3),
)
MANY_RECORDS = st.lists(VALUES, min_size=1, max_size=6).map(
    lambda values: [Record(offset, *value) for offset, value in enumerate(values)]
)
# kafka-python finds no library for the other three here; aiokafka uses the same one as we do.
BUILDERS = [
    *[(aiokafka_records.DefaultRecordBatchBuilder, codec) for codec in Compression],
    (kafka_python.DefaultRecordBatchBuilder, Compression.NONE),
    (kafka_python.DefaultRecordBatchBuilder, Compression.GZIP),
]
READERS = [
    *[(aiokafka_records.DefaultRecordBatch, codec) for codec in Compression],
    (kafka_python.DefaultRecordBatch, Compression.NONE),
    (kafka_python.DefaultRecordBatch, Compression.GZIP),
]


@pytest.mark.parametrize(("builder_type", "codec"), BUILDERS)
@settings(deadline=None, max_examples=30)
@given(records=MANY_RECORDS)
def test_what_others_build_is_read(builder_type: Any, codec: Compression, records: list[Record]) -> None:
    builder = builder_type(
        magic=2,
        compression_type=int(codec),
        is_transactional=False,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        batch_size=1 << 20,
    )
    for record in records:
        builder.append(record.offset, record.timestamp, record.key, record.value, record.headers)
    assert list(read_records(memoryview(builder.build()), LIMIT)) == records


@pytest.mark.parametrize(("reader_type", "codec"), READERS)
@settings(deadline=None, max_examples=30)
@given(records=MANY_RECORDS)
def test_what_is_built_is_read_by_others(reader_type: Any, codec: Compression, records: list[Record]) -> None:
    batch = reader_type(
        bytes(build_batch(records, compression=codec, producer_id=5, producer_epoch=6, base_sequence=7))
    )
    assert batch.validate_crc()
    assert (batch.producer_id, batch.producer_epoch, batch.base_sequence) == (5, 6, 7)
    assert batch.max_timestamp == max(record.timestamp for record in records)
    read = [Record(item.offset, item.timestamp, item.key, item.value, item.headers) for item in batch]
    assert read == records


@pytest.mark.parametrize("codec", Compression)
@given(records=MANY_RECORDS, base_offset=st.integers(0, 2**62), gap=st.integers(0, 5))
def test_records_come_back(codec: Compression, records: list[Record], base_offset: int, gap: int) -> None:
    for record in records:
        record.offset = base_offset + record.offset * (gap + 1)
    batch = build_batch(records, base_offset=base_offset, compression=codec, transactional=True, leader_epoch=3)
    header = read_batch_header(batch)
    assert has_valid_checksum(batch, 0, header)
    assert (header.base_offset, header.last_offset) == (base_offset, records[-1].offset)
    assert (header.partition_leader_epoch, header.is_transactional, header.compression) == (3, True, codec)
    assert list(read_records(batch, LIMIT)) == records


def test_append_time_stands_for_the_time_of_every_record() -> None:
    batch = build_batch([Record(0, 10, None, b"a"), Record(1, 20, None, b"b")], log_append_time=99)
    assert read_batch_header(batch).uses_log_append_time
    assert [record.timestamp for record in read_records(batch, LIMIT)] == [99, 99]


def test_a_batch_that_compaction_emptied_has_no_records() -> None:
    header = read_batch_header(build_batch([Record(0, 0, None, b"v")], compression=Compression.LZ4))
    emptied = replace_records(header._replace(record_count=0), b"", Compression.LZ4)
    assert list(read_records(emptied, LIMIT)) == []


def test_a_record_says_what_it_holds() -> None:
    assert repr(Record(1, 2, b"k", None)) == "Record(1, 2, b'k', None, [])"
    assert Record(1, 2, b"k", None) != 1


def batch_of(section: bytes, count: int = 1, last_offset_delta: int = 0) -> bytes:
    header = read_batch_header(build_batch([Record(0, 0, None, b"v")]))
    changed = header._replace(record_count=count, last_offset_delta=last_offset_delta)
    return bytes(replace_records(changed, section, Compression.NONE))


def record_of(*fields: int | bytes, length: int | None = None) -> bytes:
    body = b"\x00" + b"".join(encode_varlong(field) if isinstance(field, int) else field for field in fields)
    return encode_varlong(len(body) if length is None else length) + body


# Timestamp delta, offset delta, key, value, number of headers.
GOOD = record_of(0, 0, -1, 1, b"v", 0)
INCONSISTENT = {
    "fewer records than counted": batch_of(GOOD, count=2, last_offset_delta=1),
    "more records than counted": batch_of(GOOD + record_of(0, 1, -1, 1, b"v", 0), count=1, last_offset_delta=1),
    "no record counted": batch_of(GOOD, count=0),
    "a negative count": batch_of(GOOD, count=-1),
    "a huge count": batch_of(GOOD, count=2**31 - 1),
    "trailing bytes": batch_of(GOOD + b"\x00"),
    "a record longer than the batch": batch_of(record_of(0, 0, -1, 1, b"v", 0, length=100)),
    "a record shorter than its fields": batch_of(record_of(0, 0, -1, 1, b"v", 0, length=6)),
    "a record longer than its fields": batch_of(record_of(0, 0, -1, 1, b"v", 0, b"\x00")),
    "a record of negative length": batch_of(record_of(0, 0, -1, 1, b"v", 0, length=-1) + bytes(8)),
    "a key longer than the record": batch_of(record_of(0, 0, 100, b"k", -1, 0)),
    "a key of length -2": batch_of(record_of(0, 0, -2, 1, b"v", 0)),
    "a value longer than the record": batch_of(record_of(0, 0, -1, 2, b"v", 0, b"")),
    "more headers than bytes": batch_of(record_of(0, 0, -1, 1, b"v", 50)),
    "a negative number of headers": batch_of(record_of(0, 0, -1, 1, b"v", -1)),
    "a header without a name": batch_of(record_of(0, 0, -1, 1, b"v", 1, -1, -1)),
    "a header's name that is not UTF-8": batch_of(record_of(0, 0, -1, 1, b"v", 1, 2, b"\xc3\x28", -1)),
    "a header that is cut off": batch_of(record_of(0, 0, -1, 1, b"v", 1, 1, b"n")),
    "an offset past the last": batch_of(record_of(0, 1, -1, 1, b"v", 0)),
    "an offset before the first": batch_of(record_of(0, -1, -1, 1, b"v", 0)),
    "an offset twice": batch_of(GOOD + GOOD, count=2, last_offset_delta=1),
    "a varint without end": batch_of(b"\xff" * 20),
}


def test_the_batch_that_the_inconsistent_ones_are_made_from_is_good() -> None:
    assert list(read_records(batch_of(GOOD), LIMIT)) == [Record(0, 0, None, b"v")]


@pytest.mark.parametrize("batch", INCONSISTENT.values(), ids=INCONSISTENT)
def test_a_batch_whose_parts_do_not_add_up_is_malformed(batch: bytes) -> None:
    with pytest.raises(MalformedMessage):
        list(read_records(batch, LIMIT))


@pytest.mark.parametrize(
    ("position", "format_", "value"), [(8, ">i", 48), (8, ">i", 10_000), (8, ">i", -1), (16, ">b", 1)]
)
def test_a_header_that_does_not_fit_its_batch_is_malformed(position: int, format_: str, value: int) -> None:
    batch = bytearray(batch_of(GOOD))
    struct.pack_into(format_, batch, position, value)
    with pytest.raises(MalformedMessage):
        list(read_records(batch, LIMIT))


def test_records_over_the_limit_are_malformed() -> None:
    batch = build_batch([Record(0, 0, None, bytes(100_000))], compression=Compression.ZSTD)
    assert len(batch) < 1000
    with pytest.raises(MalformedMessage):
        list(read_records(batch, 99_999))


@settings(max_examples=examples(100))
@given(data=st.data())
def test_noise_in_a_batch_is_records_or_malformed_and_nothing_else(data: st.DataObject) -> None:
    batch = bytearray(build_batch([Record(i, i, b"k", b"v", [("h", b"x")]) for i in range(3)]))
    for _ in range(data.draw(st.integers(1, 4))):
        batch[data.draw(st.integers(HEADER_SIZE_BYTES - 4, len(batch) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(MalformedMessage):
        assert len(list(read_records(batch, LIMIT))) <= 3


def section(*records: Record) -> bytes:
    return bytes(build_batch(records)[HEADER_SIZE_BYTES:])


def test_keys_are_found_by_their_lengths() -> None:
    keyed = [Record(offset, 2**40 * offset, b"k" * (offset * 40), None, [("h", b"v")]) for offset in range(200)]
    assert every_record_has_a_key(section(*keyed), 200)
    keyless = [*keyed[:100], Record(100, 0, None, b"value"), *keyed[101:]]
    assert not every_record_has_a_key(section(*keyless), 200)
    assert every_record_has_a_key(b"", 0)


@pytest.mark.parametrize("count", [-1, 0, 1, 3, 2**31 - 1])
def test_keys_of_another_number_of_records_are_malformed(count: int) -> None:
    with pytest.raises(MalformedMessage):
        every_record_has_a_key(section(Record(0, 0, b"k", b"v"), Record(1, 0, b"k", b"v")), count)


@given(st.integers(0, 60), st.integers(0, 255), st.integers(0, 3))
def test_no_changed_byte_makes_the_search_for_keys_raise_anything_else(position: int, value: int, cut: int) -> None:
    data = bytearray(section(Record(0, 0, b"key", b"v" * 20), Record(1, 2**40, b"", None, [("a", b"b")])))
    data[position % len(data)] = value
    with contextlib.suppress(MalformedMessage):
        assert every_record_has_a_key(bytes(data[: len(data) - cut]), 2) in (True, False)


def test_a_key_longer_than_its_record_and_offsets_out_of_order_are_malformed() -> None:
    data = section(Record(0, 0, b"k", b"v"))
    with pytest.raises(MalformedMessage, match="a key of 63 bytes"):
        every_record_has_a_key(data[:4] + b"\x7e" + data[5:], 1)
    with pytest.raises(MalformedMessage, match="offset delta"):
        every_record_has_a_key(section(Record(1, 0, b"k", b"v")), 1)


def test_timestamp_of_more_than_64_bits_is_malformed() -> None:
    """A response could not hold it."""
    batch = build_batch([Record(0, 1, None, None), Record(1, 2**63, None, None)], log_append_time=1)
    clear_append_time(batch, 0)
    times = read_times(batch, LIMIT)
    assert next(times) == (0, 1)
    with pytest.raises(MalformedMessage, match="64 bits"):
        next(times)


@given(MANY_RECORDS, st.integers(0, 3))
def test_valid_records_begin_with_a_record(records: list[Record], padding: int) -> None:
    data = b"\0" * padding + section(*records)
    assert begins_with_record(data, padding, len(records))
    assert not begins_with_record(data[:-1], padding, 1)
    assert not begins_with_record(data, padding, len(data))
    assert begins_with_record(section(records[0]), 0, 1)
    assert not begins_with_record(section(records[0]) + b"\0", 0, 1)


def test_only_record_is_checked_as_a_whole_at_every_size_of_its_lengths() -> None:
    for value_bytes in (*range(140), 8_170, *range(8_180, 8_200), 1 << 20):
        data = section(Record(0, 0, None, bytes(value_bytes)))
        assert begins_with_record(data, 0, 1)
        for wrong in (data + b"\0", data[:-1], data[:-1] + b"\1", data[1:], b"\2" + data[1:]):
            assert begins_with_record(wrong, 0, 1) is _is_valid(wrong)


def _is_valid(data: bytes) -> bool:
    try:
        return check_records(data, 1) > 0
    except MalformedMessage:
        return False


@given(st.binary(max_size=30), st.integers(1, 3))
def test_no_bytes_make_the_check_of_the_first_record_raise(data: bytes, count: int) -> None:
    assert begins_with_record(data, 0, count) in (True, False)


@pytest.mark.parametrize("value_bytes", [0, 50, 100, 9_000])
def test_first_record_has_offset_delta_zero(value_bytes: int) -> None:
    for timestamp, delta in ((0, 1), (0, 77), (1_000, 1)):
        record = Record(delta, timestamp, b"key", bytes(value_bytes))
        data = section(Record(0, 0, None, None), record)[len(section(Record(0, 0, None, None))) :]
        assert not begins_with_record(data, 0, 1)


def test_of_an_only_record_with_many_headers_their_number_is_checked() -> None:
    data = section(Record(0, 0, None, b"", [("a", b"")] * (MOST_HEADERS_CHECKED + 1)))
    assert begins_with_record(data, 0, 1)
    garbled = data[: -2 * MOST_HEADERS_CHECKED] + b"\x7f" * (2 * MOST_HEADERS_CHECKED)
    assert begins_with_record(garbled, 0, 1), "the event loop does not read so many"
    with pytest.raises(MalformedMessage):
        check_records(garbled, 1)
    assert not begins_with_record(garbled + b"\0", 0, 1)
