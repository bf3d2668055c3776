"""The bytes of `__consumer_offsets`: these were made once by Apache Kafka 4.3.1's own GroupCoordinatorRecordSerde."""

import contextlib
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.coordinator.groups.group_records import (
    CommittedOffset,
    GroupKey,
    GroupMetadataValue,
    MemberMetadata,
    OffsetCommitValue,
    OffsetKey,
    decode_group_metadata,
    decode_key,
    decode_offset,
    group_metadata_record,
    group_metadata_tombstone,
    offset_tombstone,
)
from odradek.coordinator.runtime.coordinator_record import CoordinatorRecord
from odradek.protocol.malformed import MalformedMessage
from tests.coordinator.groups.committed_offsets import offset_commit_record

TOPIC_ID = UUID("01234567-89ab-cdef-0fed-cba987654321")

OFFSETS = {
    "with everything": (
        OffsetKey("gruppe-ü", "topic", 7),
        CommittedOffset(42, 5, "note", 1_700_000_000_000, topic_id=TOPIC_ID),
        "000100096772757070652dc3bc0005746f70696300000007",
        "0004000000000000002a00000005056e6f74650000018bcfe568000100100123456789abcdef0fedcba987654321",
    ),
    "without topic id": (
        OffsetKey("g", "t", 0),
        CommittedOffset(1 << 40, -1, "", 1_700_000_000_001),
        "000100016700017400000000",
        "00040000010000000000ffffffff010000018bcfe5680100",
    ),
    "with an expiry of its own": (
        OffsetKey("g", "t", 1),
        CommittedOffset(9, -1, "m", 1_700_000_000_000, 1_700_000_060_000),
        "000100016700017400000001",
        "0001000000000000000900016d0000018bcfe568000000018bcfe65260",
    ),
}

GROUP = GroupMetadataValue(
    protocol_type="consumer",
    generation=3,
    protocol="range",
    leader="m-1",
    current_state_timestamp=1_700_000_000_000,
    members=[
        MemberMetadata(
            member_id="m-1",
            group_instance_id="i-1",
            client_id="c",
            client_host="/127.0.0.1",
            rebalance_timeout=300_000,
            session_timeout=45_000,
            subscription=b"\0\1\2",
            assignment=b"\3\4",
        ),
        MemberMetadata(
            member_id="m-2", client_id="d", client_host="/::1", rebalance_timeout=60_000, session_timeout=10_000
        ),
    ],
)
EMPTY_GROUP = GroupMetadataValue(protocol=None, leader=None, current_state_timestamp=5)
GROUPS = {
    "two members": (
        GROUP,
        (
            "00030008636f6e73756d657200000003000572616e676500036d2d310000018bcfe568000000000200036d2d310003692d3100016300"
            "0a2f3132372e302e302e31000493e00000afc80000000300010200000002030400036d2d32ffff00016400042f3a3a310000ea600000"
            "27100000000000000000"
        ),
    ),
    "no member": (EMPTY_GROUP, "0003000000000000ffffffff000000000000000500000000"),
}


@pytest.mark.parametrize(("key", "committed", "key_hex", "value_hex"), OFFSETS.values(), ids=OFFSETS)
def test_an_offset_has_kafkas_bytes(key: OffsetKey, committed: CommittedOffset, key_hex: str, value_hex: str) -> None:
    expected = CoordinatorRecord(bytes.fromhex(key_hex), bytes.fromhex(value_hex))
    assert offset_commit_record(*key, committed) == expected
    assert decode_key(expected.key) == key
    assert decode_offset(bytes.fromhex(value_hex)) == committed


@pytest.mark.parametrize(("value", "value_hex"), GROUPS.values(), ids=GROUPS)
def test_a_group_has_kafkas_bytes(value: GroupMetadataValue, value_hex: str) -> None:
    record = group_metadata_record("g", value)
    assert record == CoordinatorRecord(bytes.fromhex("0002000167"), bytes.fromhex(value_hex))
    assert decode_key(record.key) == GroupKey("g")
    assert decode_group_metadata(bytes.fromhex(value_hex)) == value


def test_tombstones_have_a_key_and_no_value() -> None:
    assert offset_tombstone("g", "t", 1) == (bytes.fromhex("000100016700017400000001"), None)
    assert group_metadata_tombstone("g") == (bytes.fromhex("0002000167"), None)


@pytest.mark.parametrize("version", range(5))
@given(offset=st.integers(0, 2**62), epoch=st.integers(-1, 99), metadata=st.text(max_size=200), has_id=st.booleans())
def test_every_layout_of_an_offset_is_read(version: int, offset: int, epoch: int, metadata: str, has_id: bool) -> None:
    value = OffsetCommitValue(
        offset=offset, leader_epoch=epoch, metadata=metadata, commit_timestamp=7, expire_timestamp=8
    )
    if has_id:
        value.topic_id = TOPIC_ID
    encoded = version.to_bytes(2, "big") + b"".join(bytes(part) for part in value.encode(version))  # type: ignore[arg-type]  # no slices
    committed = decode_offset(encoded)
    assert committed.offset == offset
    assert committed.metadata == metadata
    assert committed.leader_epoch == (epoch if version >= 3 else -1)
    assert committed.expire_timestamp_ms == (8 if version == 1 else -1)
    assert committed.topic_id == (TOPIC_ID if has_id and version >= 4 else UUID(int=0))


def test_unknown_kinds_of_records_are_left_alone() -> None:
    assert decode_key(bytes.fromhex("000a00016700")) is None


@given(st.binary(max_size=60))
def test_nonsense_is_malformed_and_nothing_else(data: bytes) -> None:
    for decode in (decode_key, decode_offset, decode_group_metadata):
        with contextlib.suppress(MalformedMessage):
            decode(data)
