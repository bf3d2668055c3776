"""The one table of APIs: exactly the APIs that are listed here are served and advertised."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from odradek.handlers import (
    add_offsets_to_txn,
    add_partitions_to_txn,
    alter_client_quotas,
    alter_configs,
    api_versions,
    consumer_group_describe,
    consumer_group_heartbeat,
    create_partitions,
    create_topics,
    delete_groups,
    delete_records,
    delete_topics,
    describe_client_quotas,
    describe_cluster,
    describe_configs,
    describe_groups,
    describe_log_dirs,
    describe_producers,
    describe_topic_partitions,
    describe_transactions,
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
    list_transactions,
    metadata,
    offset_commit,
    offset_delete,
    offset_fetch,
    offset_for_leader_epoch,
    produce,
    sync_group,
    txn_offset_commit,
    write_txn_markers,
)
from odradek.handlers.api import Api

if TYPE_CHECKING:
    from odradek.protocol.schema import Request, Response


def _api(module: Any, name: str, *, advertised_min_version: int | None = None) -> Api:
    request: type[Request] = getattr(module, f"{name}Request")
    response: type[Response] = getattr(module, f"{name}Response")
    smallest, largest = request.versions
    return Api(
        key=request.api_key,
        name=name,
        request=request,
        response=response,
        handle=module.handle,
        min_version=smallest,
        max_version=largest,
        advertised_min_version=smallest if advertised_min_version is None else advertised_min_version,
    )


def build_registry() -> dict[int, Api]:
    """Every API by its key."""
    apis = [
        # librdkafka detects brokers by Produce 0, so that is advertised; 0 to 2 are not served (KAFKA-18659).
        _api(produce, "Produce", advertised_min_version=0),
        _api(fetch, "Fetch"),
        _api(list_offsets, "ListOffsets"),
        _api(metadata, "Metadata"),
        _api(offset_commit, "OffsetCommit"),
        _api(offset_fetch, "OffsetFetch"),
        _api(find_coordinator, "FindCoordinator"),
        _api(join_group, "JoinGroup"),
        _api(heartbeat, "Heartbeat"),
        _api(leave_group, "LeaveGroup"),
        _api(sync_group, "SyncGroup"),
        _api(describe_groups, "DescribeGroups"),
        _api(list_groups, "ListGroups"),
        _api(api_versions, "ApiVersions"),
        _api(create_topics, "CreateTopics"),
        _api(delete_topics, "DeleteTopics"),
        _api(delete_records, "DeleteRecords"),
        _api(init_producer_id, "InitProducerId"),
        _api(offset_for_leader_epoch, "OffsetForLeaderEpoch"),
        _api(add_partitions_to_txn, "AddPartitionsToTxn"),
        _api(add_offsets_to_txn, "AddOffsetsToTxn"),
        _api(end_txn, "EndTxn"),
        _api(write_txn_markers, "WriteTxnMarkers"),
        _api(txn_offset_commit, "TxnOffsetCommit"),
        _api(describe_configs, "DescribeConfigs"),
        _api(alter_configs, "AlterConfigs"),
        _api(describe_log_dirs, "DescribeLogDirs"),
        _api(create_partitions, "CreatePartitions"),
        _api(delete_groups, "DeleteGroups"),
        _api(incremental_alter_configs, "IncrementalAlterConfigs"),
        _api(offset_delete, "OffsetDelete"),
        _api(describe_client_quotas, "DescribeClientQuotas"),
        _api(alter_client_quotas, "AlterClientQuotas"),
        _api(describe_cluster, "DescribeCluster"),
        _api(describe_producers, "DescribeProducers"),
        _api(describe_transactions, "DescribeTransactions"),
        _api(list_transactions, "ListTransactions"),
        _api(consumer_group_heartbeat, "ConsumerGroupHeartbeat"),
        _api(consumer_group_describe, "ConsumerGroupDescribe"),
        _api(list_config_resources, "ListConfigResources"),
        _api(describe_topic_partitions, "DescribeTopicPartitions"),
    ]
    return {api.key: api for api in apis}
