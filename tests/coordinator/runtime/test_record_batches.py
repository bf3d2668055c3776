"""The batches of a coordinator are byte for byte those of the general builder."""

from hypothesis import given
from hypothesis import strategies as st

from odradek.coordinator.runtime.coordinator_record import CoordinatorRecord
from odradek.coordinator.runtime.record_batches import build_coordinator_batch
from odradek.protocol.batch import has_valid_checksum, read_batch_header
from odradek.protocol.compression import Compression
from odradek.protocol.records import Record, build_batch

# Lengths around those at which a length takes one more byte.
contents = st.binary(max_size=80) | st.integers(60, 70).map(bytes) | st.sampled_from([8190, 8192, 20_000]).map(bytes)
records = st.lists(st.builds(CoordinatorRecord, contents, st.none() | contents), min_size=1, max_size=80)


@given(records, st.integers(0, 2**41), st.sampled_from([Compression.NONE, Compression.ZSTD]))
def test_the_bytes_are_those_of_the_general_builder(
    records: list[CoordinatorRecord], timestamp_ms: int, compression: Compression
) -> None:
    expected = build_batch(
        [Record(index, timestamp_ms, key, value) for index, (key, value) in enumerate(records)], compression=compression
    )
    batch = build_coordinator_batch(records, timestamp_ms, compression)
    assert batch == expected
    assert has_valid_checksum(batch, 0, read_batch_header(batch))
