"""The fast way through the records of a batch sees what the thorough one sees."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odradek.log.compaction.record_keys import cut_records, read_keys, read_offset_deltas, rebase_timestamps
from odradek.protocol.batch import HEADER_SIZE_BYTES, read_batch_header, write_batch
from odradek.protocol.malformed import MalformedMessage
from odradek.protocol.records import Record, build_batch, read_records
from tests.log.batches import NOW_MS

KEYS = st.one_of(st.none(), st.binary(max_size=8), st.binary(min_size=60, max_size=70), st.just(b"k" * 9000))
VALUES = st.one_of(st.none(), st.binary(max_size=10), st.just(b""), st.just(b"v" * 130), st.just(b"v" * 9000))
HEADERS = st.lists(st.tuples(st.text(max_size=3), st.one_of(st.none(), st.binary(max_size=3))), max_size=2)


@st.composite
def record_lists(draw: st.DrawFn) -> list[Record]:
    count = draw(st.integers(1, 8))
    offset = -1
    records = []
    for _ in range(count):
        offset += draw(st.sampled_from([1, 1, 1, 2, 70, 9000]))
        timestamp = NOW_MS + draw(st.integers(-(10**12), 10**12))
        records.append(Record(offset, timestamp, draw(KEYS), draw(VALUES), draw(HEADERS)))
    return records


@settings(max_examples=60, deadline=None)
@given(record_lists(), st.binary(max_size=3))
def test_keys_tombstones_and_offsets_are_those_of_the_records(records: list[Record], before: bytes) -> None:
    section = bytes(build_batch(records))[HEADER_SIZE_BYTES:]
    data = before + section + b"what follows"
    start, end = len(before), len(before) + len(section)
    found = read_keys(data, start, end, len(records))
    for key, record in zip(found.keys, records, strict=True):
        if record.key is not None and len(record.key) > 63:
            assert isinstance(key, int)
        else:
            assert key == record.key
    assert found.keyless == [index for index, record in enumerate(records) if record.key is None]
    assert found.tombstones == [index for index, record in enumerate(records) if record.value is None]
    assert read_offset_deltas(data, start, len(records)) == [record.offset for record in records]


@settings(max_examples=60, deadline=None)
@given(record_lists(), st.randoms(use_true_random=False), st.integers(-(10**12), 10**12))
def test_a_cut_keeps_the_chosen_records_as_they_were(
    records: list[Record], chance: random.Random, shift_ms: int
) -> None:
    batch = bytes(build_batch(records))
    header = read_batch_header(batch)
    is_kept = [chance.random() < 0.5 for _ in records]
    section, largest_delta = cut_records(b"!" + batch[HEADER_SIZE_BYTES:], 1, is_kept)
    kept = [record for record, keep in zip(records, is_kept, strict=True) if keep]
    cut = header._replace(batch_length=49 + len(section), record_count=len(kept))
    assert list(read_records(write_batch(cut, section), 1 << 30)) == kept
    if kept:
        assert header.base_timestamp + largest_delta == max(record.timestamp for record in kept)
    rebased = rebase_timestamps(section, len(kept), shift_ms)
    moved = cut._replace(base_timestamp=header.base_timestamp - shift_ms, batch_length=49 + len(rebased))
    assert list(read_records(write_batch(moved, rebased), 1 << 30)) == kept


def test_long_keys_that_differ_are_reported_apart() -> None:
    keys = [b"a" * 64, b"a" * 63 + b"b", b"a" * 64]
    section = bytes(build_batch([Record(i, NOW_MS, key, b"") for i, key in enumerate(keys)]))[HEADER_SIZE_BYTES:]
    first, second, third = read_keys(section, 0, len(section), 3).keys
    assert first == third != second


@settings(deadline=None)
@given(st.binary(max_size=60), st.integers(1, 4))
def test_nonsense_is_refused_or_read_but_never_a_crash(data: bytes, record_count: int) -> None:
    try:
        read_keys(data, 0, len(data), record_count)
    except MalformedMessage:
        return


def test_a_batch_with_fewer_records_than_it_says_is_refused() -> None:
    section = bytes(build_batch([Record(0, NOW_MS, b"key", b"value")]))[HEADER_SIZE_BYTES:]
    with pytest.raises(MalformedMessage):
        read_keys(section, 0, len(section), 2)
    with pytest.raises(MalformedMessage):
        read_keys(section + section, 0, 2 * len(section), 1)
