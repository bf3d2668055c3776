"""Every refusal has the error code that Apache Kafka answers with."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.log.batch_validation import check_batch
from odradek.log.log_config import LogConfig, ProduceValidation, TimestampType
from odradek.protocol.batch import HEADER_SIZE_BYTES, BatchHeader, read_batch_header, write_batch
from odradek.protocol.compression import Compression
from odradek.protocol.errors import ErrorCode
from tests.log.batches import NOW_MS, make_batch

CONFIG = LogConfig()


def check(batch: bytes | bytearray | memoryview, config: LogConfig = CONFIG) -> BatchHeader | ErrorCode:
    return check_batch(memoryview(batch), config, NOW_MS)


def changed(batch: memoryview, **fields: int) -> bytearray:
    """The batch with other header fields, and the checksum they need."""
    return write_batch(read_batch_header(batch)._replace(**fields), batch[HEADER_SIZE_BYTES:])


def test_a_good_batch_gives_its_header() -> None:
    batch = make_batch([b"a", b"b"])
    assert check(batch) == read_batch_header(batch)


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"base_offset": 1}, ErrorCode.INVALID_RECORD),
        ({"record_count": 0}, ErrorCode.INVALID_RECORD),
        ({"record_count": -1}, ErrorCode.INVALID_RECORD),
        ({"record_count": 3}, ErrorCode.INVALID_RECORD),
        ({"last_offset_delta": 0}, ErrorCode.INVALID_RECORD),
        ({"last_offset_delta": -1, "record_count": 0}, ErrorCode.INVALID_RECORD),
        ({"attributes": 0x20}, ErrorCode.INVALID_RECORD),
        ({"attributes": 0x05}, ErrorCode.INVALID_RECORD),
        ({"producer_id": 1, "producer_epoch": 0, "base_sequence": -1}, ErrorCode.INVALID_RECORD),
        ({"magic": 0}, ErrorCode.INVALID_RECORD),
        ({"magic": 1}, ErrorCode.INVALID_RECORD),
        ({"magic": 3}, ErrorCode.CORRUPT_MESSAGE),
        ({"magic": -1}, ErrorCode.CORRUPT_MESSAGE),
        ({"batch_length": 13}, ErrorCode.CORRUPT_MESSAGE),
        ({"batch_length": -1}, ErrorCode.CORRUPT_MESSAGE),
        ({"batch_length": 0x7FFFFFFF}, ErrorCode.INVALID_RECORD),
        ({"batch_length": 48}, ErrorCode.CORRUPT_MESSAGE),
        ({"max_timestamp": NOW_MS + 3_600_001}, ErrorCode.INVALID_TIMESTAMP),
    ],
)
def test_an_inconsistent_header_is_refused(fields: dict[str, int], error: ErrorCode) -> None:
    assert check(changed(make_batch([b"a", b"b"]), **fields)) is error


def test_a_wrong_checksum_is_corrupt() -> None:
    batch = make_batch()
    batch[-1] ^= 1
    assert check(batch) is ErrorCode.CORRUPT_MESSAGE


def test_exactly_one_batch_is_taken() -> None:
    batch = bytes(make_batch())
    assert check(b"") is ErrorCode.INVALID_RECORD
    assert check(batch + batch) is ErrorCode.INVALID_RECORD
    assert check(batch + b"\0") is ErrorCode.INVALID_RECORD
    assert check(batch[:-1]) is ErrorCode.INVALID_RECORD
    assert check(batch[:61]) is ErrorCode.INVALID_RECORD
    assert check(batch[:16]) is ErrorCode.INVALID_RECORD


def test_size_limits() -> None:
    batch = make_batch([b"x" * 1000])
    assert check(batch, LogConfig(max_message_bytes=len(batch) - 1)) is ErrorCode.MESSAGE_TOO_LARGE
    assert check(batch, LogConfig(segment_bytes=len(batch) - 1)) is ErrorCode.RECORD_LIST_TOO_LARGE
    exactly = LogConfig(max_message_bytes=len(batch), segment_bytes=len(batch))
    assert isinstance(check(batch, exactly), BatchHeader)


def test_timestamps_are_bounded_only_where_producers_set_them() -> None:
    old, future = make_batch(timestamps=[NOW_MS - 1001]), make_batch(timestamps=[NOW_MS + 1001])
    bounded = LogConfig(message_timestamp_before_max_ms=1000, message_timestamp_after_max_ms=1000)
    assert check(old, bounded) is ErrorCode.INVALID_TIMESTAMP
    assert check(future, bounded) is ErrorCode.INVALID_TIMESTAMP
    assert isinstance(check(make_batch(timestamps=[NOW_MS - 1000]), bounded), BatchHeader)
    assert isinstance(check(make_batch(timestamps=[-1]), bounded), BatchHeader)
    stamped = LogConfig(
        message_timestamp_type=TimestampType.LOG_APPEND_TIME,
        message_timestamp_before_max_ms=1000,
        message_timestamp_after_max_ms=1000,
    )
    assert isinstance(check(old, stamped), BatchHeader)
    assert isinstance(check(future, stamped), BatchHeader)


@given(st.binary(max_size=200))
def test_no_bytes_make_it_raise(data: bytes) -> None:
    assert isinstance(check(data), ErrorCode)


@given(st.integers(0, 200), st.integers(0, 255))
def test_no_changed_byte_makes_it_raise(position: int, value: int) -> None:
    batch = make_batch([b"x" * 100, b"y"], producer=(1, 0, 0))
    batch[position % len(batch)] = value
    check(batch)


def test_first_record_must_be_one() -> None:
    good = make_batch([b"value"])
    header = read_batch_header(good)
    for records in (b"uncompressed garbage", good[HEADER_SIZE_BYTES:].tobytes() + b"\0", bytes(20)):
        batch = write_batch(header._replace(batch_length=49 + len(records)), records)
        assert check(batch) is ErrorCode.INVALID_RECORD
        assert isinstance(check(batch, LogConfig(produce_validation=ProduceValidation.HEADER)), BatchHeader)


@pytest.mark.parametrize("compression", Compression)
def test_a_count_that_the_bytes_cannot_hold_is_refused(compression: Compression) -> None:
    batch = make_batch([b""], key=None, compression=compression)
    limit_bytes = CONFIG.decompressed_limit_bytes if compression else len(batch) - HEADER_SIZE_BYTES
    largest = limit_bytes // 7
    assert isinstance(check(changed(batch, record_count=largest, last_offset_delta=largest - 1)), BatchHeader)
    for count in (largest + 1, 2**31 - 1):
        too_many = changed(batch, record_count=count, last_offset_delta=count - 1)
        assert check(too_many) is ErrorCode.INVALID_RECORD


def test_a_producers_flag_of_append_time_is_taken_out_or_refused() -> None:
    """Both as Apache Kafka 4.3.1 was seen to do."""
    plain = make_batch([b"a", b"b"])
    flagged = changed(plain, attributes=0x08)
    stamped = LogConfig(message_timestamp_type=TimestampType.LOG_APPEND_TIME)
    assert check(flagged, stamped) is ErrorCode.INVALID_TIMESTAMP
    assert check(flagged) == read_batch_header(plain)
    assert flagged == plain
