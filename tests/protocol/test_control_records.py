"""Control batches: the bytes are Apache Kafka's, and what is no marker is not taken for one."""

import random
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.protocol.batch import CONTROL_FLAG, TRANSACTIONAL_FLAG, has_valid_checksum, read_batch_header
from odradek.protocol.control_records import (
    ControlRecordType,
    EndTransactionMarker,
    build_end_transaction_marker,
    read_end_transaction_marker,
)
from odradek.protocol.malformed import MalformedMessage
from odradek.protocol.records import Record, build_batch
from tests.jvm.json_session import JsonSession

TIMESTAMP_MS = 1_700_000_000_000

MARKERS = st.builds(
    EndTransactionMarker,
    producer_id=st.integers(0, 2**63 - 1),
    producer_epoch=st.integers(0, 2**15 - 1),
    type=st.sampled_from(ControlRecordType),
    coordinator_epoch=st.integers(0, 2**31 - 1),
)


@given(MARKERS, st.integers(0, 2**40), st.integers(0, 2**20))
def test_a_marker_is_read_as_it_was_built(marker: EndTransactionMarker, offset: int, leader_epoch: int) -> None:
    batch = build_end_transaction_marker(marker, TIMESTAMP_MS, base_offset=offset, leader_epoch=leader_epoch)
    header = read_batch_header(batch)
    assert has_valid_checksum(batch, 0, header)
    assert header.attributes == TRANSACTIONAL_FLAG | CONTROL_FLAG
    assert (header.base_offset, header.last_offset, header.partition_leader_epoch) == (offset, offset, leader_epoch)
    assert (header.base_timestamp, header.max_timestamp, header.base_sequence) == (TIMESTAMP_MS, TIMESTAMP_MS, -1)
    assert read_end_transaction_marker(batch, header) == marker
    key, value = struct.pack(">hh", 0, marker.type), struct.pack(">hi", 0, marker.coordinator_epoch)
    assert batch == build_batch(
        [Record(offset, TIMESTAMP_MS, key, value)],
        base_offset=offset,
        leader_epoch=leader_epoch,
        producer_id=marker.producer_id,
        producer_epoch=marker.producer_epoch,
        transactional=True,
        control=True,
    )


def control_batch(key: bytes | None, value: bytes | None) -> bytearray:
    return build_batch([Record(0, TIMESTAMP_MS, key, value)], producer_id=1, producer_epoch=0, control=True)


def test_other_control_records_are_no_markers() -> None:
    leader_change = control_batch(b"\x00\x00\x00\x02", b"anything")
    assert read_end_transaction_marker(leader_change, read_batch_header(leader_change)) is None
    emptied = read_batch_header(leader_change)._replace(record_count=0)
    assert read_end_transaction_marker(leader_change, emptied) is None


def test_later_versions_may_add_fields() -> None:
    batch = control_batch(b"\x00\x01\x00\x01more", b"\x00\x02\x00\x00\x00\x07more")
    marker = read_end_transaction_marker(batch, read_batch_header(batch))
    assert marker == EndTransactionMarker(1, 0, ControlRecordType.COMMIT, 7)


@pytest.mark.parametrize(("key", "value"), [(None, None), (b"\x00\x00\x00", b""), (b"\x00\x00\x00\x01", b"\x00\x00")])
def test_a_short_marker_is_malformed(key: bytes | None, value: bytes | None) -> None:
    batch = control_batch(key, value)
    with pytest.raises(MalformedMessage):
        read_end_transaction_marker(batch, read_batch_header(batch))


@given(st.binary(max_size=200), st.integers(0, 3))
def test_nonsense_is_malformed_or_nothing(data: bytes, record_count: int) -> None:
    header = read_batch_header(control_batch(b"", b""))._replace(record_count=record_count)
    try:
        found = read_end_transaction_marker(data, header)
    except MalformedMessage:
        return
    assert found is None or found.producer_id == header.producer_id


@pytest.mark.more
@pytest.mark.jvm
@pytest.mark.timeout(300)
def test_the_bytes_are_those_of_apache_kafka(jvm: None) -> None:
    chance = random.Random(0)
    with JsonSession("odradek.MarkerSession") as session:
        for _ in range(50):
            marker = EndTransactionMarker(
                chance.randrange(2**62),
                chance.randrange(2**15),
                chance.choice([*ControlRecordType]),
                chance.randrange(2**31),
            )
            offset, leader_epoch = chance.randrange(2**50), chance.randrange(2**31)
            answer = session.call(
                {
                    "base_offset": offset,
                    "timestamp": TIMESTAMP_MS,
                    "leader_epoch": leader_epoch,
                    **marker._asdict(),
                    "type": marker.type.name,
                }
            )
            ours = build_end_transaction_marker(marker, TIMESTAMP_MS, base_offset=offset, leader_epoch=leader_epoch)
            assert ours.hex() == answer["batch"]
