"""The fast reader finds the same keys and values as the full record reader."""

from hypothesis import given
from hypothesis import strategies as st

from odradek.protocol.batch import TRANSACTIONAL_FLAG
from odradek.protocol.compression import Compression
from odradek.protocol.key_values import read_key_values
from odradek.protocol.records import Record, build_batch

LIMIT = 1 << 20
fields = st.none() | st.binary(max_size=80) | st.integers(60, 70).map(bytes) | st.just(bytes(9000))
batches = st.lists(st.tuples(fields, fields, st.integers(0, 2**40)), min_size=1, max_size=8)


def build(rows: list[tuple[bytes | None, bytes | None, int]], base_offset: int, codec: Compression) -> bytes:
    records = [
        Record(base_offset + index, timestamp, key, value, [("header", b"x")] if index % 2 else [])
        for index, (key, value, timestamp) in enumerate(rows)
    ]
    return bytes(build_batch(records, base_offset=base_offset, compression=codec))


@given(st.lists(batches, max_size=4), st.sampled_from(Compression))
def test_all_keys_and_values_are_found(
    stretch: list[list[tuple[bytes | None, bytes | None, int]]], codec: Compression
) -> None:
    data, offset = b"", 7
    for rows in stretch:
        data += build(rows, offset, codec)
        offset += len(rows)
    found = list(read_key_values(data, LIMIT))
    assert [batch.pairs for batch in found] == [[(key, value) for key, value, _ in rows] for rows in stretch]
    assert not any(batch.problem for batch in found)
    assert offset == (found[-1].next_offset if found else 7)


def test_a_batch_that_is_cut_off_is_left_for_later() -> None:
    whole = build([(b"k", b"v", 0)], 0, Compression.NONE)
    assert len(list(read_key_values(whole + whole[:-1], LIMIT))) == 1
    assert list(read_key_values(whole[:50], LIMIT)) == []


def test_the_attributes_are_reported() -> None:
    batch = build_batch(
        [Record(0, 0, b"k", b"v")], transactional=True, producer_id=1, producer_epoch=0, base_sequence=0
    )
    (found,) = read_key_values(bytes(batch), LIMIT)
    assert found.attributes & TRANSACTIONAL_FLAG


@given(batches, st.data())
def test_a_damaged_batch_is_a_problem_and_no_crash(
    rows: list[tuple[bytes | None, bytes | None, int]], data: st.DataObject
) -> None:
    batch = bytearray(build(rows, 0, Compression.NONE))
    position = data.draw(st.integers(61, len(batch) - 1))
    batch[position] ^= data.draw(st.integers(1, 255))
    (found,) = read_key_values(bytes(batch), LIMIT)
    assert found.next_offset == len(rows)
