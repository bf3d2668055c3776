"""The one table of APIs: exactly the APIs that are listed here are served. Those between brokers are not advertised."""

from __future__ import annotations

from functools import partial
from importlib import import_module

from odradek.handlers.api import Api
from odradek.handlers.refused_requests import refusing_store_failures
from odradek.handlers.topic_aliases import has_topic_names, understanding_aliases

FETCH_KEY = 1


def _load(api: Api) -> None:
    handler = import_module(f"odradek.handlers.{api.module}")
    api.request = getattr(handler, f"{api.name}Request")
    api.response = getattr(handler, f"{api.name}Response")
    handle, prepare = handler.handle, getattr(handler, "prepare", None)
    if api.is_forwarded:
        handle = refusing_store_failures(handle)
    if api.audit:
        audited_actions = import_module("odradek.handlers.audited_actions")
        describe = getattr(audited_actions, api.audit)
        handle = audited_actions.audited(handle, describe)
        prepare = prepare and audited_actions.audited_preparation(prepare, describe)
    if has_topic_names(api.request):
        handle = understanding_aliases(handle, has_sessions=api.key == FETCH_KEY)
    api.handle, api.prepare = handle, prepare


_api = partial(Api, load=_load)


_APIS = (
    # librdkafka detects brokers by Produce 0, so that is advertised; 0 to 2 are not served (KAFKA-18659).
    _api(0, "Produce", 3, 13, advertised_min_version=0),
    _api(1, "Fetch", 4, 18),
    _api(2, "ListOffsets", 1, 11),
    _api(3, "Metadata", 0, 13),
    _api(8, "OffsetCommit", 2, 10),
    _api(9, "OffsetFetch", 1, 10),
    _api(10, "FindCoordinator", 0, 6),
    _api(11, "JoinGroup", 0, 9),
    _api(12, "Heartbeat", 0, 4),
    _api(13, "LeaveGroup", 0, 5),
    _api(14, "SyncGroup", 0, 5),
    _api(15, "DescribeGroups", 0, 6),
    _api(16, "ListGroups", 0, 5),
    _api(17, "SaslHandshake", 0, 1),
    _api(18, "ApiVersions", 0, 4),
    _api(19, "CreateTopics", 2, 7, is_forwarded=True, audit="create_topics"),
    _api(20, "DeleteTopics", 1, 6, is_forwarded=True, audit="delete_topics"),
    _api(21, "DeleteRecords", 0, 2, audit="delete_records"),
    _api(22, "InitProducerId", 0, 5),
    _api(23, "OffsetForLeaderEpoch", 2, 4),
    _api(24, "AddPartitionsToTxn", 0, 5),
    _api(25, "AddOffsetsToTxn", 0, 4),
    _api(26, "EndTxn", 0, 5),
    _api(27, "WriteTxnMarkers", 1, 2),
    _api(28, "TxnOffsetCommit", 0, 5),
    _api(29, "DescribeAcls", 1, 3),
    _api(30, "CreateAcls", 1, 3, is_forwarded=True, audit="create_acls"),
    _api(31, "DeleteAcls", 1, 3, is_forwarded=True, audit="delete_acls"),
    _api(32, "DescribeConfigs", 1, 4),
    _api(33, "AlterConfigs", 0, 2, is_forwarded=True, audit="alter_configs"),
    _api(34, "AlterReplicaLogDirs", 1, 2, audit="alter_replica_log_dirs"),
    _api(35, "DescribeLogDirs", 1, 5),
    _api(36, "SaslAuthenticate", 0, 2),
    _api(37, "CreatePartitions", 0, 3, is_forwarded=True, audit="create_partitions"),
    _api(38, "CreateDelegationToken", 1, 3, is_forwarded=True, audit="delegation_token"),
    _api(39, "RenewDelegationToken", 1, 2, is_forwarded=True, audit="delegation_token"),
    _api(40, "ExpireDelegationToken", 1, 2, is_forwarded=True, audit="delegation_token"),
    _api(41, "DescribeDelegationToken", 1, 3),
    _api(42, "DeleteGroups", 0, 2, audit="delete_groups"),
    _api(43, "ElectLeaders", 0, 2, is_forwarded=True, audit="elect_leaders"),
    _api(44, "IncrementalAlterConfigs", 0, 1, is_forwarded=True, audit="alter_configs"),
    _api(45, "AlterPartitionReassignments", 0, 1, is_forwarded=True, audit="alter_partition_reassignments"),
    _api(46, "ListPartitionReassignments", 0, 0, is_forwarded=True),
    _api(47, "OffsetDelete", 0, 0, audit="offset_delete"),
    _api(48, "DescribeClientQuotas", 0, 1),
    _api(49, "AlterClientQuotas", 0, 1, is_forwarded=True, audit="alter_client_quotas"),
    _api(50, "DescribeUserScramCredentials", 0, 0),
    _api(51, "AlterUserScramCredentials", 0, 0, is_forwarded=True, audit="alter_users"),
    _api(56, "AlterPartition", 2, 3, is_between_brokers=True),
    _api(57, "UpdateFeatures", 0, 2, is_forwarded=True, audit="update_features"),
    _api(58, "Envelope", 0, 0, is_between_brokers=True),
    _api(60, "DescribeCluster", 0, 2),
    _api(61, "DescribeProducers", 0, 0),
    _api(63, "BrokerHeartbeat", 0, 2, is_between_brokers=True),
    _api(64, "UnregisterBroker", 0, 0, is_forwarded=True, audit="unregister_broker"),
    _api(65, "DescribeTransactions", 0, 0),
    _api(66, "ListTransactions", 0, 2),
    _api(67, "AllocateProducerIds", 0, 0, is_between_brokers=True),
    _api(68, "ConsumerGroupHeartbeat", 0, 1),
    _api(69, "ConsumerGroupDescribe", 0, 1),
    _api(71, "GetTelemetrySubscriptions", 0, 0, is_telemetry=True),
    _api(72, "PushTelemetry", 0, 0, is_telemetry=True),
    _api(74, "ListConfigResources", 0, 1),
    _api(75, "DescribeTopicPartitions", 0, 0),
    _api(10001, "DescribeBrokerMetrics", 0, 0, is_own=True),
    _api(10002, "DescribeClientTelemetry", 0, 0, is_own=True),
    _api(10003, "CreateStreams", 0, 0, is_own=True, is_forwarded=True, audit="create_streams"),
    _api(10004, "EditStreams", 0, 0, is_own=True, is_forwarded=True, audit="edit_streams"),
    _api(10005, "DeleteStreams", 0, 0, is_own=True, is_forwarded=True, audit="delete_streams"),
    _api(10006, "DescribeStreams", 0, 0, is_own=True),
)
"""The versions are those of the message tables, which are not imported for this."""


def build_cluster_registry() -> dict[int, Api]:
    """The APIs of a broker in a cluster, by their keys: also those that brokers use among themselves."""
    return {api.key: api for api in _APIS}


def build_registry() -> dict[int, Api]:
    """The APIs of a single broker."""
    return {api.key: api for api in _APIS if not api.is_between_brokers}
