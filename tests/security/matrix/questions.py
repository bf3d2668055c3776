"""One request for each API that checks access, or several where it checks in several ways."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from odradek.protocol.messages import (
    add_offsets_to_txn,
    add_partitions_to_txn,
    alter_client_quotas,
    alter_configs,
    alter_partition_reassignments,
    consumer_group_describe,
    consumer_group_heartbeat,
    create_acls,
    create_partitions,
    create_topics,
    delete_acls,
    delete_groups,
    delete_records,
    delete_topics,
    describe_acls,
    describe_client_quotas,
    describe_cluster,
    describe_configs,
    describe_groups,
    describe_log_dirs,
    describe_producers,
    describe_topic_partitions,
    describe_transactions,
    elect_leaders,
    end_txn,
    fetch,
    find_coordinator,
    heartbeat,
    incremental_alter_configs,
    init_producer_id,
    join_group,
    leave_group,
    list_config_resources,
    list_groups,
    list_offsets,
    list_partition_reassignments,
    list_transactions,
    metadata,
    offset_commit,
    offset_delete,
    offset_fetch,
    offset_for_leader_epoch,
    produce,
    sync_group,
    txn_offset_commit,
    unregister_broker,
    write_txn_markers,
)
from odradek.protocol.records import Record, build_batch

if TYPE_CHECKING:
    from collections.abc import Iterator
    from uuid import UUID

    from odradek.protocol.schema import Request, Response
    from tests.security.matrix.rights import Names

NO_PRODUCER = 4_000_000  # an id that no broker has given out
TOPIC, BROKER, GROUP, CLIENT_METRICS = 2, 4, 32, 16


class Question(NamedTuple):
    label: str
    request: Request
    response: type[Response]
    version: int | None = None


def _batch(*, transactional: bool = False) -> memoryview:
    identity: dict[str, Any] = {"producer_id": NO_PRODUCER, "producer_epoch": 0, "base_sequence": 0}
    records = [Record(offset=0, timestamp=1_700_000_000_000, key=None, value=b"value", headers=())]
    return memoryview(build_batch(records, transactional=transactional, **(identity if transactional else {})))


def questions(names: Names, topic_id: UUID, node_id: int) -> Iterator[Question]:
    """In this order: those that delete come last."""
    yield from _cluster_questions(names, node_id)
    yield from _topic_questions(names, topic_id)
    yield from _config_questions(names, node_id)
    yield from _group_questions(names, topic_id)
    yield from _transaction_questions(names)
    yield from _creations(names)
    yield from _deletions(names, topic_id)


def _cluster_questions(names: Names, node_id: int) -> Iterator[Question]:
    with_operations = describe_cluster.DescribeClusterRequest(include_cluster_authorized_operations=True)
    yield Question("DescribeCluster", with_operations, describe_cluster.DescribeClusterResponse)
    everything: dict[str, Any] = dict.fromkeys(("resource_type_filter", "pattern_type_filter"), 1)
    everything |= dict.fromkeys(("operation", "permission_type"), 1)
    filtered: dict[str, Any] = {"resource_name_filter": "no-such", "principal_filter": None, "host_filter": None}
    describe = describe_acls.DescribeAclsRequest(**everything, **filtered)
    yield Question("DescribeAcls", describe, describe_acls.DescribeAclsResponse)
    delete = delete_acls.DeleteAclsRequest(filters=[delete_acls.DeleteAclsFilter(**everything, **filtered)])
    yield Question("DeleteAcls", delete, delete_acls.DeleteAclsResponse)
    creation = create_acls.AclCreation(
        resource_type=2, resource_name="no-such", principal="User:nobody", host="*", operation=3, permission_type=3
    )
    create = create_acls.CreateAclsRequest(creations=[creation])
    yield Question("CreateAcls", create, create_acls.CreateAclsResponse)
    reassigned = alter_partition_reassignments.ReassignableTopic(
        name=names.topic,
        partitions=[alter_partition_reassignments.ReassignablePartition(partition_index=0, replicas=None)],
    )
    yield Question(
        "AlterPartitionReassignments",
        alter_partition_reassignments.AlterPartitionReassignmentsRequest(topics=[reassigned]),
        alter_partition_reassignments.AlterPartitionReassignmentsResponse,
    )
    yield Question(
        "ListPartitionReassignments",
        list_partition_reassignments.ListPartitionReassignmentsRequest(topics=None),
        list_partition_reassignments.ListPartitionReassignmentsResponse,
    )
    elected = elect_leaders.TopicPartitions(topic=names.topic, partitions=[0])
    yield Question(
        "ElectLeaders",
        elect_leaders.ElectLeadersRequest(election_type=0, topic_partitions=[elected]),
        elect_leaders.ElectLeadersResponse,
    )
    yield Question(
        "UnregisterBroker",
        unregister_broker.UnregisterBrokerRequest(broker_id=node_id + 1000),
        unregister_broker.UnregisterBrokerResponse,
    )
    logs = describe_log_dirs.DescribableLogDirTopic(topic=names.topic, partitions=[0])
    yield Question(
        "DescribeLogDirs",
        describe_log_dirs.DescribeLogDirsRequest(topics=[logs]),
        describe_log_dirs.DescribeLogDirsResponse,
    )
    yield Question(
        "DescribeClientQuotas",
        describe_client_quotas.DescribeClientQuotasRequest(components=[], strict=False),
        describe_client_quotas.DescribeClientQuotasResponse,
    )
    quota = alter_client_quotas.EntryData(
        entity=[alter_client_quotas.EntityData(entity_type="user", entity_name="nobody")],
        ops=[alter_client_quotas.OpData(key="producer_byte_rate", value=1.0, remove=False)],
    )
    yield Question(
        "AlterClientQuotas",
        alter_client_quotas.AlterClientQuotasRequest(entries=[quota], validate_only=True),
        alter_client_quotas.AlterClientQuotasResponse,
    )


def _topic_questions(names: Names, topic_id: UUID) -> Iterator[Question]:
    both = (names.topic, names.missing_topic)
    rights = {"include_topic_authorized_operations": True, "allow_auto_topic_creation": False}
    named = [metadata.MetadataRequestTopic(name=name) for name in both]
    yield Question("Metadata", metadata.MetadataRequest(topics=named, **rights), metadata.MetadataResponse)
    by_id = [metadata.MetadataRequestTopic(name=None, topic_id=topic_id)]
    yield Question("Metadata by id", metadata.MetadataRequest(topics=by_id, **rights), metadata.MetadataResponse)
    yield Question(
        "Metadata of everything",
        metadata.MetadataRequest(topics=None, include_cluster_authorized_operations=True, **rights),
        metadata.MetadataResponse,
        10,
    )
    yield Question(
        "Metadata that creates",
        metadata.MetadataRequest(topics=[metadata.MetadataRequestTopic(name="!")], allow_auto_topic_creation=True),
        metadata.MetadataResponse,
    )
    described = [describe_topic_partitions.TopicRequest(name=name) for name in both]
    for label, topics in (("DescribeTopicPartitions", described), ("DescribeTopicPartitions of everything", [])):
        yield Question(
            label,
            describe_topic_partitions.DescribeTopicPartitionsRequest(topics=topics, cursor=None),
            describe_topic_partitions.DescribeTopicPartitionsResponse,
        )
    yield Question("Produce", _produce(both), produce.ProduceResponse, 12)
    appended = [produce.PartitionProduceData(index=0, records=_batch())]
    topic_data = [produce.TopicProduceData(topic_id=topic_id, partition_data=appended)]
    yield Question(
        "Produce by id",
        produce.ProduceRequest(transactional_id=None, acks=-1, timeout_ms=1000, topic_data=topic_data),
        produce.ProduceResponse,
    )
    fetched = [
        fetch.FetchTopic(topic=name, partitions=[fetch.FetchPartition(partition=0, partition_max_bytes=100)])
        for name in both
    ]
    yield Question("Fetch", _fetch(fetched), fetch.FetchResponse, 12)
    fetched_by_id = fetch.FetchTopic(
        topic_id=topic_id, partitions=[fetch.FetchPartition(partition=0, partition_max_bytes=100)]
    )
    yield Question("Fetch by id", _fetch([fetched_by_id]), fetch.FetchResponse)
    listed = [
        list_offsets.ListOffsetsTopic(
            name=name, partitions=[list_offsets.ListOffsetsPartition(partition_index=0, timestamp=-1)]
        )
        for name in both
    ]
    yield Question(
        "ListOffsets", list_offsets.ListOffsetsRequest(replica_id=-1, topics=listed), list_offsets.ListOffsetsResponse
    )
    epochs = [
        offset_for_leader_epoch.OffsetForLeaderTopic(
            topic=name, partitions=[offset_for_leader_epoch.OffsetForLeaderPartition(partition=0, leader_epoch=0)]
        )
        for name in both
    ]
    yield Question(
        "OffsetForLeaderEpoch",
        offset_for_leader_epoch.OffsetForLeaderEpochRequest(replica_id=-1, topics=epochs),
        offset_for_leader_epoch.OffsetForLeaderEpochResponse,
    )
    producers = [describe_producers.TopicRequest(name=name, partition_indexes=[0]) for name in both]
    yield Question(
        "DescribeProducers",
        describe_producers.DescribeProducersRequest(topics=producers),
        describe_producers.DescribeProducersResponse,
    )


def _produce(topics: tuple[str, ...], transactional_id: str | None = None) -> produce.ProduceRequest:
    batch = _batch(transactional=transactional_id is not None)
    return produce.ProduceRequest(
        transactional_id=transactional_id,
        acks=-1,
        timeout_ms=1000,
        topic_data=[
            produce.TopicProduceData(name=name, partition_data=[produce.PartitionProduceData(index=0, records=batch)])
            for name in topics
        ],
    )


def _fetch(topics: list[fetch.FetchTopic]) -> fetch.FetchRequest:
    return fetch.FetchRequest(max_wait_ms=0, min_bytes=0, max_bytes=1000, session_id=0, session_epoch=-1, topics=topics)


def _config_questions(names: Names, node_id: int) -> Iterator[Question]:
    resources = [(TOPIC, names.topic), (TOPIC, names.missing_topic), (BROKER, str(node_id)), (GROUP, names.group)]
    for kind, name in resources:
        label = {TOPIC: "topic", BROKER: "broker", GROUP: "group"}[kind]
        label = "missing topic" if name == names.missing_topic else label
        described = describe_configs.DescribeConfigsResource(
            resource_type=kind, resource_name=name, configuration_keys=["no.such"]
        )
        yield Question(
            f"DescribeConfigs of {label}",
            describe_configs.DescribeConfigsRequest(resources=[described]),
            describe_configs.DescribeConfigsResponse,
        )
        altered = incremental_alter_configs.AlterConfigsResource(resource_type=kind, resource_name=name, configs=[])
        yield Question(
            f"IncrementalAlterConfigs of {label}",
            incremental_alter_configs.IncrementalAlterConfigsRequest(resources=[altered], validate_only=True),
            incremental_alter_configs.IncrementalAlterConfigsResponse,
        )
    replaced = alter_configs.AlterConfigsResource(resource_type=TOPIC, resource_name=names.topic, configs=[])
    yield Question(
        "AlterConfigs",
        alter_configs.AlterConfigsRequest(resources=[replaced], validate_only=True),
        alter_configs.AlterConfigsResponse,
    )
    yield Question(
        "ListConfigResources",
        list_config_resources.ListConfigResourcesRequest(resource_types=[CLIENT_METRICS]),
        list_config_resources.ListConfigResourcesResponse,
    )


def _group_questions(names: Names, topic_id: UUID) -> Iterator[Question]:
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


def _transaction_questions(names: Names) -> Iterator[Question]:
    transactional_id, both = names.transactional_id, (names.topic, names.missing_topic)
    identity: dict[str, Any] = {"producer_id": NO_PRODUCER, "producer_epoch": 0}
    yield Question(
        "InitProducerId without transactions",
        init_producer_id.InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000),
        init_producer_id.InitProducerIdResponse,
    )
    yield Question(
        "InitProducerId",
        init_producer_id.InitProducerIdRequest(
            transactional_id=transactional_id, transaction_timeout_ms=60_000, producer_id=-1, producer_epoch=-1
        ),
        init_producer_id.InitProducerIdResponse,
    )
    added = [add_partitions_to_txn.AddPartitionsToTxnTopic(name=name, partitions=[0]) for name in both]
    for label, topics in (("AddPartitionsToTxn", added[:1]), ("AddPartitionsToTxn of a missing topic", added)):
        yield Question(
            label,
            add_partitions_to_txn.AddPartitionsToTxnRequest(
                v3_and_below_transactional_id=transactional_id,
                v3_and_below_producer_id=NO_PRODUCER,
                v3_and_below_producer_epoch=0,
                v3_and_below_topics=topics,
            ),
            add_partitions_to_txn.AddPartitionsToTxnResponse,
            3,
        )
    of_broker = add_partitions_to_txn.AddPartitionsToTxnTransaction(
        transactional_id=transactional_id, verify_only=True, topics=added[:1], **identity
    )
    yield Question(
        "AddPartitionsToTxn of brokers",
        add_partitions_to_txn.AddPartitionsToTxnRequest(transactions=[of_broker]),
        add_partitions_to_txn.AddPartitionsToTxnResponse,
    )
    yield Question(
        "AddOffsetsToTxn",
        add_offsets_to_txn.AddOffsetsToTxnRequest(transactional_id=transactional_id, group_id=names.group, **identity),
        add_offsets_to_txn.AddOffsetsToTxnResponse,
    )
    yield Question("Produce in a transaction", _produce(both, transactional_id), produce.ProduceResponse, 11)
    hidden = _produce((names.topic,), transactional_id)
    hidden.transactional_id = None
    yield Question("Produce in a hidden transaction", hidden, produce.ProduceResponse, 11)
    committed = [
        txn_offset_commit.TxnOffsetCommitRequestTopic(
            name=name,
            partitions=[txn_offset_commit.TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=0)],
        )
        for name in both
    ]
    yield Question(
        "TxnOffsetCommit",
        txn_offset_commit.TxnOffsetCommitRequest(
            transactional_id=transactional_id, group_id=names.group, topics=committed, **identity
        ),
        txn_offset_commit.TxnOffsetCommitResponse,
        4,
    )
    yield Question(
        "EndTxn",
        end_txn.EndTxnRequest(transactional_id=transactional_id, committed=True, **identity),
        end_txn.EndTxnResponse,
        4,
    )
    yield Question(
        "DescribeTransactions",
        describe_transactions.DescribeTransactionsRequest(transactional_ids=[transactional_id]),
        describe_transactions.DescribeTransactionsResponse,
    )
    yield Question(
        "ListTransactions", list_transactions.ListTransactionsRequest(), list_transactions.ListTransactionsResponse
    )
    marker = write_txn_markers.WritableTxnMarker(
        producer_id=NO_PRODUCER + 1,
        producer_epoch=0,
        transaction_result=False,
        topics=[write_txn_markers.WritableTxnMarkerTopic(name=names.topic, partition_indexes=[0])],
        coordinator_epoch=0,
    )
    yield Question(
        "WriteTxnMarkers",
        write_txn_markers.WriteTxnMarkersRequest(markers=[marker]),
        write_txn_markers.WriteTxnMarkersResponse,
        1,
    )


def _creations(names: Names) -> Iterator[Question]:
    new = [
        create_topics.CreatableTopic(name=name, num_partitions=1, replication_factor=1)
        for name in (names.topic, names.missing_topic)
    ]
    yield Question(
        "CreateTopics",
        create_topics.CreateTopicsRequest(topics=new, validate_only=True),
        create_topics.CreateTopicsResponse,
    )
    grown = [
        create_partitions.CreatePartitionsTopic(name=name, count=2, assignments=None)
        for name in (names.topic, names.missing_topic)
    ]
    yield Question(
        "CreatePartitions",
        create_partitions.CreatePartitionsRequest(topics=grown, timeout_ms=60_000, validate_only=True),
        create_partitions.CreatePartitionsResponse,
    )


def _deletions(names: Names, topic_id: UUID) -> Iterator[Question]:
    both = (names.topic, names.missing_topic)
    records = [
        delete_records.DeleteRecordsTopic(
            name=name, partitions=[delete_records.DeleteRecordsPartition(partition_index=0, offset=0)]
        )
        for name in both
    ]
    yield Question(
        "DeleteRecords",
        delete_records.DeleteRecordsRequest(topics=records, timeout_ms=1000),
        delete_records.DeleteRecordsResponse,
    )
    offsets = [
        offset_delete.OffsetDeleteRequestTopic(
            name=name, partitions=[offset_delete.OffsetDeleteRequestPartition(partition_index=0)]
        )
        for name in both
    ]
    yield Question(
        "OffsetDelete",
        offset_delete.OffsetDeleteRequest(group_id=names.group, topics=offsets),
        offset_delete.OffsetDeleteResponse,
    )
    yield Question(
        "DeleteGroups",
        delete_groups.DeleteGroupsRequest(groups_names=[names.group]),
        delete_groups.DeleteGroupsResponse,
    )
    missing = delete_topics.DeleteTopicState(name=names.missing_topic)
    present = delete_topics.DeleteTopicState(name=names.topic)
    by_id = delete_topics.DeleteTopicState(name=None, topic_id=topic_id)
    for label, topic in (
        ("DeleteTopics of a missing topic", missing),
        ("DeleteTopics by id", by_id),
        ("DeleteTopics", present),
    ):
        yield Question(
            label,
            delete_topics.DeleteTopicsRequest(topics=[topic], timeout_ms=10_000),
            delete_topics.DeleteTopicsResponse,
        )
