"""The one table of APIs: exactly the APIs that are listed here are served. Those between brokers are not advertised."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from odradek.handlers import (
    add_offsets_to_txn,
    add_partitions_to_txn,
    allocate_producer_ids,
    alter_client_quotas,
    alter_configs,
    alter_partition,
    alter_partition_reassignments,
    alter_replica_log_dirs,
    alter_user_scram_credentials,
    api_versions,
    broker_heartbeat,
    consumer_group_describe,
    consumer_group_heartbeat,
    create_acls,
    create_delegation_token,
    create_partitions,
    create_topics,
    delete_acls,
    delete_groups,
    delete_records,
    delete_topics,
    describe_acls,
    describe_broker_metrics,
    describe_client_quotas,
    describe_client_telemetry,
    describe_cluster,
    describe_configs,
    describe_delegation_token,
    describe_groups,
    describe_log_dirs,
    describe_producers,
    describe_topic_partitions,
    describe_transactions,
    describe_user_scram_credentials,
    elect_leaders,
    end_txn,
    envelope,
    expire_delegation_token,
    fetch,
    find_coordinator,
    get_telemetry_subscriptions,
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
    push_telemetry,
    renew_delegation_token,
    sasl_authenticate,
    sasl_handshake,
    sync_group,
    txn_offset_commit,
    unregister_broker,
    update_features,
    write_txn_markers,
)
from odradek.handlers import audited_actions as actions
from odradek.handlers.api import Api
from odradek.handlers.audited_actions import audited, audited_preparation
from odradek.handlers.refused_requests import refusing_store_failures

if TYPE_CHECKING:
    from odradek.handlers.audited_actions import Describe
    from odradek.protocol.schema import Request, Response


def _api(
    module: Any,
    name: str,
    *,
    advertised_min_version: int | None = None,
    is_forwarded: bool = False,
    is_between_brokers: bool = False,
    is_own: bool = False,
    is_telemetry: bool = False,
    audit: Describe | None = None,
) -> Api:
    request: type[Request] = getattr(module, f"{name}Request")
    response: type[Response] = getattr(module, f"{name}Response")
    smallest, largest = request.versions
    prepare = getattr(module, "prepare", None)
    handle = refusing_store_failures(module.handle) if is_forwarded else module.handle
    return Api(
        key=request.api_key,
        name=name,
        request=request,
        response=response,
        handle=handle if audit is None else audited(handle, audit),
        min_version=smallest,
        max_version=largest,
        advertised_min_version=smallest if advertised_min_version is None else advertised_min_version,
        is_forwarded=is_forwarded,
        prepare=prepare if prepare is None or audit is None else audited_preparation(prepare, audit),
        is_between_brokers=is_between_brokers,
        is_own=is_own,
        is_telemetry=is_telemetry,
    )


def build_cluster_registry() -> dict[int, Api]:
    """The APIs of a broker in a cluster: also those that brokers use among themselves."""
    apis = [
        _api(alter_partition, "AlterPartition", is_between_brokers=True),
        _api(envelope, "Envelope", is_between_brokers=True),
        _api(broker_heartbeat, "BrokerHeartbeat", is_between_brokers=True),
        _api(allocate_producer_ids, "AllocateProducerIds", is_between_brokers=True),
    ]
    return {**build_registry(), **{api.key: api for api in apis}}


def _token_apis() -> list[Api]:
    """Delegation tokens (KIP-48)."""
    audit = actions.delegation_token
    return [
        _api(create_delegation_token, "CreateDelegationToken", is_forwarded=True, audit=audit),
        _api(renew_delegation_token, "RenewDelegationToken", is_forwarded=True, audit=audit),
        _api(expire_delegation_token, "ExpireDelegationToken", is_forwarded=True, audit=audit),
        _api(describe_delegation_token, "DescribeDelegationToken"),
    ]


def _transaction_apis() -> list[Api]:
    return [
        _api(init_producer_id, "InitProducerId"),
        _api(add_partitions_to_txn, "AddPartitionsToTxn"),
        _api(add_offsets_to_txn, "AddOffsetsToTxn"),
        _api(end_txn, "EndTxn"),
        _api(write_txn_markers, "WriteTxnMarkers"),
        _api(txn_offset_commit, "TxnOffsetCommit"),
        _api(describe_producers, "DescribeProducers"),
        _api(describe_transactions, "DescribeTransactions"),
        _api(list_transactions, "ListTransactions"),
    ]


def _metrics_apis() -> list[Api]:
    """Metrics of clients and of this broker."""
    return [
        _api(get_telemetry_subscriptions, "GetTelemetrySubscriptions", is_telemetry=True),
        _api(push_telemetry, "PushTelemetry", is_telemetry=True),
        _api(describe_broker_metrics, "DescribeBrokerMetrics", is_own=True),
        _api(describe_client_telemetry, "DescribeClientTelemetry", is_own=True),
    ]


def build_registry() -> dict[int, Api]:
    """The APIs of a single broker, by their keys."""
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
        _api(sasl_handshake, "SaslHandshake"),
        _api(api_versions, "ApiVersions"),
        _api(create_topics, "CreateTopics", is_forwarded=True, audit=actions.create_topics),
        _api(delete_topics, "DeleteTopics", is_forwarded=True, audit=actions.delete_topics),
        _api(delete_records, "DeleteRecords", audit=actions.delete_records),
        _api(offset_for_leader_epoch, "OffsetForLeaderEpoch"),
        _api(describe_acls, "DescribeAcls"),
        _api(create_acls, "CreateAcls", is_forwarded=True, audit=actions.create_acls),
        _api(delete_acls, "DeleteAcls", is_forwarded=True, audit=actions.delete_acls),
        _api(describe_configs, "DescribeConfigs"),
        _api(alter_configs, "AlterConfigs", is_forwarded=True, audit=actions.alter_configs),
        _api(alter_replica_log_dirs, "AlterReplicaLogDirs", audit=actions.alter_replica_log_dirs),
        _api(describe_log_dirs, "DescribeLogDirs"),
        _api(sasl_authenticate, "SaslAuthenticate"),
        _api(create_partitions, "CreatePartitions", is_forwarded=True, audit=actions.create_partitions),
        _api(delete_groups, "DeleteGroups", audit=actions.delete_groups),
        _api(incremental_alter_configs, "IncrementalAlterConfigs", is_forwarded=True, audit=actions.alter_configs),
        _api(offset_delete, "OffsetDelete", audit=actions.offset_delete),
        _api(describe_client_quotas, "DescribeClientQuotas"),
        _api(alter_client_quotas, "AlterClientQuotas", is_forwarded=True, audit=actions.alter_client_quotas),
        _api(describe_user_scram_credentials, "DescribeUserScramCredentials"),
        _api(alter_user_scram_credentials, "AlterUserScramCredentials", is_forwarded=True, audit=actions.alter_users),
        _api(elect_leaders, "ElectLeaders", is_forwarded=True, audit=actions.elect_leaders),
        _api(
            alter_partition_reassignments,
            "AlterPartitionReassignments",
            is_forwarded=True,
            audit=actions.alter_partition_reassignments,
        ),
        _api(list_partition_reassignments, "ListPartitionReassignments", is_forwarded=True),
        _api(unregister_broker, "UnregisterBroker", is_forwarded=True, audit=actions.unregister_broker),
        _api(update_features, "UpdateFeatures", is_forwarded=True, audit=actions.update_features),
        _api(describe_cluster, "DescribeCluster"),
        _api(consumer_group_heartbeat, "ConsumerGroupHeartbeat"),
        _api(consumer_group_describe, "ConsumerGroupDescribe"),
        _api(list_config_resources, "ListConfigResources"),
        _api(describe_topic_partitions, "DescribeTopicPartitions"),
        *_token_apis(),
        *_transaction_apis(),
        *_metrics_apis(),
    ]
    return {api.key: api for api in apis}
