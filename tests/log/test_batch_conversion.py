"""Where records must be looked at: keys of compacted topics, and another codec than the producer's."""

import hypothesis.strategies as st
import pytest
from hypothesis import given

from odradek.log.batch_conversion import convert_batch, largest_record_count
from odradek.log.log_config import LogConfig
from odradek.protocol.batch import (
    HEADER_SIZE_BYTES,
    BatchHeader,
    has_valid_checksum,
    read_batch_header,
    replace_records,
)
from odradek.protocol.compression import Compression, compress
from odradek.protocol.errors import ErrorCode
from odradek.protocol.records import Record, build_batch, check_records, read_records
from tests.log.batches import make_batch

NAMES = {
    "uncompressed": Compression.NONE,
    "gzip": Compression.GZIP,
    "snappy": Compression.SNAPPY,
    "lz4": Compression.LZ4,
    "zstd": Compression.ZSTD,
}


@pytest.mark.parametrize("source", Compression)
@pytest.mark.parametrize("target", NAMES)
def test_records_survive_another_codec(source: Compression, target: str) -> None:
    values = [b"a" * 1000, b"b"]
    batch = make_batch(values, compression=source, producer=(3, 1, 7))
    header = read_batch_header(batch)
    converted = convert_batch(batch, header, LogConfig(compression_type=target))
    assert isinstance(converted, memoryview)
    new_header = read_batch_header(converted)
    assert new_header.compression is NAMES[target]
    assert has_valid_checksum(converted, 0, new_header)
    assert [record.value for record in read_records(converted, 1 << 20)] == values
    kept = ("producer_id", "producer_epoch", "base_sequence", "record_count", "max_timestamp", "last_offset_delta")
    assert all(getattr(header, name) == getattr(new_header, name) for name in kept)
    if source is NAMES[target]:
        assert converted is batch


def test_a_batch_that_grows_over_the_limit_is_too_large() -> None:
    batch = make_batch([b"a" * 10_000], compression=Compression.ZSTD)
    config = LogConfig(compression_type="uncompressed", max_message_bytes=5000)
    assert convert_batch(batch, read_batch_header(batch), config) is ErrorCode.MESSAGE_TOO_LARGE
    config = LogConfig(compression_type="uncompressed", segment_bytes=5000)
    assert convert_batch(batch, read_batch_header(batch), config) is ErrorCode.RECORD_LIST_TOO_LARGE


@pytest.mark.parametrize("compression", Compression)
def test_a_compacted_topic_needs_keys(compression: Compression) -> None:
    config = LogConfig(is_compacted=True)
    keyless = make_batch(key=None, compression=compression)
    keyed = make_batch(key=b"", compression=compression)
    assert convert_batch(keyless, read_batch_header(keyless), config) is ErrorCode.INVALID_RECORD
    assert convert_batch(keyed, read_batch_header(keyed), config) is keyed


def test_what_cannot_be_decompressed_is_an_invalid_record() -> None:
    batch = make_batch([b"a" * 1000], compression=Compression.ZSTD)
    batch[70:80] = bytes(10)
    header = read_batch_header(batch)
    assert convert_batch(batch, header, LogConfig(compression_type="gzip")) is ErrorCode.INVALID_RECORD
    assert convert_batch(batch, header, LogConfig(is_compacted=True)) is ErrorCode.INVALID_RECORD


@pytest.mark.parametrize("compression", [Compression.GZIP, Compression.LZ4, Compression.ZSTD])
def test_a_small_batch_that_unpacks_to_much_is_refused(compression: Compression) -> None:
    batch = make_batch([bytes(17 << 20)], compression=compression)
    header = read_batch_header(batch)
    assert len(batch) < LogConfig().max_message_bytes
    other = "uncompressed" if compression is Compression.GZIP else "gzip"
    assert convert_batch(batch, header, LogConfig(compression_type=other)) is ErrorCode.INVALID_RECORD
    assert convert_batch(batch, header, LogConfig(is_compacted=True)) is ErrorCode.INVALID_RECORD
    assert convert_batch(batch, header, LogConfig()) is batch, "no conversion is needed"
    larger = LogConfig(is_compacted=True, max_message_bytes=2 << 20)
    assert convert_batch(batch, header, larger) is batch


def test_a_compacted_topic_looks_at_so_many_records_and_no_more() -> None:
    config = LogConfig(is_compacted=True)
    batch = make_batch([b""] * 10, compression=Compression.ZSTD)
    header = read_batch_header(batch)
    assert largest_record_count(config) == config.max_message_bytes // 7
    too_many = header._replace(record_count=largest_record_count(config) + 1)
    assert convert_batch(batch, too_many, config) is ErrorCode.INVALID_RECORD


def with_records(data: bytes, count: int) -> tuple[memoryview, BatchHeader]:
    """A batch of right header and checksum whose compressed records are these bytes."""
    batch = make_batch([b"v"] * count)
    rebuilt = memoryview(replace_records(read_batch_header(batch), compress(Compression.GZIP, data), Compression.GZIP))
    return rebuilt, read_batch_header(rebuilt)


def records_of(values: list[bytes]) -> bytes:
    return bytes(make_batch(values)[HEADER_SIZE_BYTES:])


@pytest.mark.parametrize(
    ("data", "count"),
    [
        (b"these bytes are no records", 1),
        (records_of([b"v"]) + b"more", 1),
        (records_of([b"v"]), 2),
        (records_of([b"v", b"v"]), 1),
        (records_of([b"v"]) * 2, 2),  # the offset delta does not rise
        (records_of([b"v"])[:-1] + b"\x02", 1),  # a header that does not fit
    ],
)
def test_another_codec_needs_valid_records(data: bytes, count: int) -> None:
    """Kafka's LogValidator reads each record when it compresses a batch again."""
    batch, header = with_records(data, count)
    assert convert_batch(batch, header, LogConfig(compression_type="zstd")) is ErrorCode.INVALID_RECORD
    assert convert_batch(batch, header, LogConfig(compression_type="gzip")) is batch


@given(st.lists(st.tuples(st.none() | st.binary(max_size=9), st.none() | st.binary(max_size=200)), min_size=1))
def test_valid_records_are_accepted(pairs: list[tuple[bytes | None, bytes | None]]) -> None:
    batch = build_batch([Record(index, 1000 + index, *pair, [("h", b"x")]) for index, pair in enumerate(pairs)])
    check_records(bytes(batch[HEADER_SIZE_BYTES:]), len(pairs))
