"""Structs behave like plain records: Kafka's defaults, equality by value, no attribute that is no field."""

import pytest

from odradek.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from odradek.protocol.messages.fetch import FetchRequest, LeaderIdAndEpoch, PartitionData
from odradek.protocol.messages.list_offsets import ListOffsetsPartition
from odradek.protocol.messages.metadata import MetadataRequest
from odradek.protocol.messages.produce import LeaderIdAndEpoch as ProduceLeader


def test_fields_start_at_kafkas_defaults() -> None:
    request = FetchRequest()
    assert (request.replica_id, request.max_bytes, request.cluster_id, request.topics) == (-1, 2**31 - 1, None, [])
    assert CreateTopicsRequest().timeout_ms == 60000


def test_lists_are_not_shared_between_structs() -> None:
    one, other = MetadataRequest(), MetadataRequest()
    assert one.topics == []
    one.topics = [*(one.topics or [])]
    assert one.topics is not other.topics
    assert CreatableTopic().configs is not CreatableTopic().configs


def test_equality_is_by_type_and_values() -> None:
    assert LeaderIdAndEpoch(leader_id=1) == LeaderIdAndEpoch(leader_id=1)
    assert LeaderIdAndEpoch(leader_id=1) != LeaderIdAndEpoch(leader_id=2)
    assert LeaderIdAndEpoch() != ProduceLeader()
    assert LeaderIdAndEpoch() == PartitionData().current_leader
    assert PartitionData().current_leader == LeaderIdAndEpoch()


def test_a_struct_says_what_it_holds() -> None:
    assert repr(LeaderIdAndEpoch(leader_id=1)) == "LeaderIdAndEpoch(leader_id=1, leader_epoch=-1)"


def test_a_struct_takes_no_other_names() -> None:
    with pytest.raises(TypeError, match="leader_node"):
        LeaderIdAndEpoch(leader_node=1)  # type: ignore[call-arg]  # no such field
    with pytest.raises(AttributeError):
        ListOffsetsPartition().offset = 3  # type: ignore[attr-defined]  # as above
    with pytest.raises(TypeError, match="unhashable"):
        hash(LeaderIdAndEpoch())


def test_a_version_outside_the_table_is_a_bug_of_the_caller() -> None:
    with pytest.raises(ValueError, match="MetadataRequest has versions 0 to 13, not 14"):
        MetadataRequest().encode(14)
    with pytest.raises(ValueError, match="not -1"):
        MetadataRequest.decode(memoryview(b""), 0, -1)


def test_flexible_versions_start_where_the_table_says() -> None:
    assert [version for version in range(14) if MetadataRequest.is_flexible(version)] == [9, 10, 11, 12, 13]
