"""Requests about groups and their offsets."""

from collections.abc import Iterator
from uuid import UUID

from odradek.protocol.messages import (
    consumer_group_describe,
    consumer_group_heartbeat,
    describe_groups,
    find_coordinator,
    heartbeat,
    join_group,
    leave_group,
    list_groups,
    offset_commit,
    offset_fetch,
    sync_group,
)
from tests.security.matrix.question import Question
from tests.security.matrix.rights import Names


def group_questions(names: Names, topic_id: UUID) -> Iterator[Question]:
    group = names.group
    both = (names.topic, names.missing_topic)
    for label, kind, key in (("group", 0, group), ("transaction", 1, names.transactional_id)):
        yield Question(
            f"FindCoordinator of {label}",
            find_coordinator.FindCoordinatorRequest(key_type=kind, coordinator_keys=[key]),
            find_coordinator.FindCoordinatorResponse,
        )
    yield Question(
        "DescribeGroups",
        describe_groups.DescribeGroupsRequest(groups=[group], include_authorized_operations=True),
        describe_groups.DescribeGroupsResponse,
    )
    yield Question("ListGroups", list_groups.ListGroupsRequest(), list_groups.ListGroupsResponse)
    committed = [
        offset_commit.OffsetCommitRequestTopic(
            name=name,
            partitions=[offset_commit.OffsetCommitRequestPartition(partition_index=0, committed_offset=0)],
        )
        for name in both
    ]
    commit = offset_commit.OffsetCommitRequest(group_id=group, generation_id_or_member_epoch=-1, topics=committed)
    yield Question("OffsetCommit", commit, offset_commit.OffsetCommitResponse, 9)
    by_id = offset_commit.OffsetCommitRequestTopic(
        topic_id=topic_id,
        partitions=[offset_commit.OffsetCommitRequestPartition(partition_index=0, committed_offset=0)],
    )
    commit = offset_commit.OffsetCommitRequest(group_id=group, generation_id_or_member_epoch=-1, topics=[by_id])
    yield Question("OffsetCommit by id", commit, offset_commit.OffsetCommitResponse)
    fetched = [offset_fetch.OffsetFetchRequestTopics(name=name, partition_indexes=[0]) for name in both]
    for label, topics in (("OffsetFetch", fetched), ("OffsetFetch of everything", None)):
        asked = offset_fetch.OffsetFetchRequestGroup(group_id=group, topics=topics)
        yield Question(label, offset_fetch.OffsetFetchRequest(groups=[asked]), offset_fetch.OffsetFetchResponse, 9)
    asked = offset_fetch.OffsetFetchRequestGroup(
        group_id=group,
        topics=[offset_fetch.OffsetFetchRequestTopics(topic_id=topic_id, partition_indexes=[0])],
    )
    yield Question(
        "OffsetFetch by id", offset_fetch.OffsetFetchRequest(groups=[asked]), offset_fetch.OffsetFetchResponse
    )
    yield Question(
        "JoinGroup",
        join_group.JoinGroupRequest(
            group_id=group, session_timeout_ms=10, rebalance_timeout_ms=100, protocol_type="consumer", protocols=[]
        ),
        join_group.JoinGroupResponse,
    )
    yield Question(
        "SyncGroup",
        sync_group.SyncGroupRequest(
            group_id=group, generation_id=7, member_id="nobody", protocol_type="consumer", protocol_name="range"
        ),
        sync_group.SyncGroupResponse,
    )
    beat = heartbeat.HeartbeatRequest(group_id=group, generation_id=7, member_id="nobody")
    yield Question("Heartbeat", beat, heartbeat.HeartbeatResponse)
    leave = leave_group.LeaveGroupRequest(group_id=group, members=[leave_group.MemberIdentity(member_id="nobody")])
    yield Question("LeaveGroup", leave, leave_group.LeaveGroupResponse)
    yield Question(
        "ConsumerGroupHeartbeat",
        consumer_group_heartbeat.ConsumerGroupHeartbeatRequest(
            group_id=group, member_id="nobody", member_epoch=7, subscribed_topic_names=list(both)
        ),
        consumer_group_heartbeat.ConsumerGroupHeartbeatResponse,
    )
    yield Question(
        "ConsumerGroupDescribe",
        consumer_group_describe.ConsumerGroupDescribeRequest(group_ids=[group], include_authorized_operations=True),
        consumer_group_describe.ConsumerGroupDescribeResponse,
    )
