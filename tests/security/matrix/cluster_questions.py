"""Requests about the cluster: ACLs, quotas, brokers, reassignments."""

from collections.abc import Iterator
from typing import Any

from odradek.protocol.messages import (
    alter_client_quotas,
    alter_partition_reassignments,
    alter_replica_log_dirs,
    create_acls,
    delete_acls,
    describe_acls,
    describe_client_quotas,
    describe_cluster,
    describe_log_dirs,
    elect_leaders,
    list_partition_reassignments,
    unregister_broker,
    update_features,
)
from tests.security.matrix.question import Question
from tests.security.matrix.rights import Names


def cluster_questions(names: Names, node_id: int) -> Iterator[Question]:
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
    feature = update_features.FeatureUpdateKey(feature="no.such.feature", max_version_level=1)
    yield Question(
        "UpdateFeatures",
        update_features.UpdateFeaturesRequest(feature_updates=[feature]),
        update_features.UpdateFeaturesResponse,
    )
    logs = describe_log_dirs.DescribableLogDirTopic(topic=names.topic, partitions=[0])
    yield Question(
        "DescribeLogDirs",
        describe_log_dirs.DescribeLogDirsRequest(topics=[logs]),
        describe_log_dirs.DescribeLogDirsResponse,
    )
    moved = alter_replica_log_dirs.AlterReplicaLogDirTopic(name=names.topic, partitions=[0])
    directory = alter_replica_log_dirs.AlterReplicaLogDir(path="/no-such-directory", topics=[moved])
    yield Question(
        "AlterReplicaLogDirs",
        alter_replica_log_dirs.AlterReplicaLogDirsRequest(dirs=[directory]),
        alter_replica_log_dirs.AlterReplicaLogDirsResponse,
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
