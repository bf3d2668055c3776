"""Blame: found in what was refused, never a crash, and never more work than is bounded."""

from hypothesis import given
from hypothesis import strategies as st

from odradek.log.log_config import LogConfig, TimestampType
from odradek.log.record_faults import MOST_FAULTS, MOST_RECORDS_READ, find_faults
from odradek.protocol.compression import Compression
from odradek.protocol.records import Record, build_batch

NOW_MS = 1_700_000_000_000
COMPACTED = LogConfig(is_compacted=True)


def test_the_message_says_what_the_topic_asks() -> None:
    config = LogConfig(message_timestamp_after_max_ms=1000)
    batch = build_batch([Record(0, NOW_MS + 1000, None, b""), Record(1, NOW_MS + 1001, None, b"")])
    ((index, message),) = find_faults(memoryview(batch), config, NOW_MS)
    assert index == 1
    assert str(NOW_MS + 1001) in message
    assert str(NOW_MS + 1000) in message


def test_a_sound_batch_has_no_faults() -> None:
    batch = build_batch([Record(0, NOW_MS, b"key", b"value")])
    assert find_faults(memoryview(batch), COMPACTED, NOW_MS) == []


def test_of_a_huge_batch_only_the_first_records_are_read() -> None:
    records = [Record(offset, NOW_MS, None, b"") for offset in range(MOST_RECORDS_READ + 10)]
    assert len(find_faults(memoryview(build_batch(records)), COMPACTED, NOW_MS)) == MOST_FAULTS
    keyed = [Record(offset, NOW_MS, b"k", b"") for offset in range(MOST_RECORDS_READ)]
    batch = build_batch([*keyed, *records[MOST_RECORDS_READ:]])
    assert find_faults(memoryview(batch), COMPACTED, NOW_MS) == []


def test_a_header_that_promises_records_gets_no_more_blame_than_others() -> None:
    config = LogConfig(message_timestamp_type=TimestampType.LOG_APPEND_TIME)
    batch = build_batch([Record(0, NOW_MS, None, b"")], log_append_time=NOW_MS)
    batch[57:61] = (1 << 20).to_bytes(4, "big")  # the number of records
    assert len(find_faults(memoryview(batch), config, NOW_MS)) == MOST_FAULTS


@given(
    st.sampled_from(list(Compression)),
    st.integers(0, 200),
    st.binary(min_size=1, max_size=8),
    st.integers(0, 200),
)
def test_undecodable_bytes_give_a_bounded_number_of_faults(
    compression: Compression, position: int, damage: bytes, kept: int
) -> None:
    batch = build_batch([Record(offset, NOW_MS, None, b"v" * 9) for offset in range(3)], compression=compression)
    position = min(position, len(batch) - 1)
    batch[position : position + len(damage)] = damage
    for each in (batch, batch[:kept]):
        assert len(find_faults(memoryview(each), COMPACTED, NOW_MS)) <= MOST_FAULTS


def test_headers_of_records_are_not_read() -> None:
    """They may be half a million, and the event loop would read them."""
    headers = [("", b"")] * 3
    batch = build_batch([Record(0, 1_000, None, b"", headers)])
    batch[-1] = 0x7F  # the length of the last header is wrong
    faults = find_faults(memoryview(batch), LogConfig(is_compacted=True), 1_000)
    assert [fault.batch_index for fault in faults] == [0]
