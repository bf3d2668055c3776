"""Run the matrix on a broker: prepare the resources of a case, give the rights, ask every question, take them back."""

from collections.abc import Iterator, Sequence
from uuid import UUID

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.create_acls import AclCreation, CreateAclsRequest, CreateAclsResponse
from odradek.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from odradek.protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest, DeleteAclsResponse
from odradek.protocol.messages.describe_acls import DescribeAclsRequest, DescribeAclsResponse
from odradek.protocol.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from odradek.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from odradek.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from odradek.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from odradek.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from odradek.protocol.schema import Struct
from odradek.security.acls.bindings import AclBinding
from tests.security.matrix.brokers import MatrixBroker
from tests.security.matrix.questions import questions
from tests.security.matrix.rights import ADMIN_HOST, CLIENT_HOST, Names, Rights, admin_bindings, names_of

CLOSED = "closed"
NAMES = ("name", "topic", "group_id", "transactional_id", "key", "resource_name")
HIDDEN = "secret"  # another case's resource, which the client must never see


def prepare(broker: MatrixBroker) -> int:
    """Give the administrator all rights, so that nobody else has any; the id of the broker."""
    add_acls(broker, admin_bindings())
    create_topic(broker, HIDDEN)
    cluster = broker.call(ADMIN_HOST, DescribeClusterRequest(), DescribeClusterResponse)
    for kind in (0, 1):  # the topics of both coordinators
        broker.settle(lambda kind=kind: _has_coordinator(broker, kind, "anything"))  # type: ignore[misc]  # a default
    return cluster.brokers[0].broker_id


def _has_coordinator(broker: MatrixBroker, kind: int, key: str) -> bool:
    request = FindCoordinatorRequest(key_type=kind, coordinator_keys=[key])
    (found,) = broker.call(ADMIN_HOST, request, FindCoordinatorResponse).coordinators
    return found.error_code == ErrorCode.NONE


def run_case(broker: MatrixBroker, number: int, rights: Rights, node_id: int) -> Iterator[tuple[str, object]]:
    """Each question with the errors and names of its response."""
    names = names_of(number)
    topic_id = create_topic(broker, names.topic)
    broker.settle(lambda: _commits_offset(broker, names))
    broker.settle(lambda: _begins(broker, names))
    bindings = rights.bindings(names)
    add_acls(broker, bindings)
    if bindings:
        broker.settle(lambda: _is_effective(broker, rights, names))
    for question in questions(names, topic_id, node_id):
        try:
            response = broker.call(CLIENT_HOST, question.request, question.response, question.version)
        except Exception:  # closed connections have several faces
            yield question.label, CLOSED
        else:
            yield question.label, outline(response)
    remove_acls(broker, bindings)


def outline(value: object) -> object:
    """The errors, rights and names of a response; everything else depends on the broker."""
    if isinstance(value, list):
        return sorted((outline(each) for each in value), key=str)
    assert isinstance(value, Struct)
    kept: dict[str, object] = {}
    for field in type(value).fields:
        content = getattr(value, field.name)
        if field.name.endswith("error_code"):
            kept[field.name] = ErrorCode(content).name
        elif field.name.endswith("authorized_operations") or (field.name in NAMES and isinstance(content, str)):
            kept[field.name] = content
        elif isinstance(content, Struct) or (isinstance(content, list) and content and isinstance(content[0], Struct)):
            kept[field.name] = outline(content)
    return {name: content for name, content in kept.items() if content not in ([], {}, [{}])}


def create_topic(broker: MatrixBroker, name: str) -> UUID:
    request = CreateTopicsRequest(topics=[CreatableTopic(name=name, num_partitions=1, replication_factor=1)])
    (created,) = broker.call(ADMIN_HOST, request, CreateTopicsResponse).topics
    assert created.error_code == ErrorCode.NONE, ErrorCode(created.error_code)
    broker.settle(lambda: _has_leader(broker, name))
    return created.topic_id


def _has_leader(broker: MatrixBroker, name: str) -> bool:
    request = MetadataRequest(topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=False)
    (topic,) = broker.call(ADMIN_HOST, request, MetadataResponse).topics
    return topic.error_code == ErrorCode.NONE and all(each.leader_id >= 0 for each in topic.partitions)


def _commits_offset(broker: MatrixBroker, names: Names) -> bool:
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=0)
    request = OffsetCommitRequest(
        group_id=names.group,
        generation_id_or_member_epoch=-1,
        topics=[OffsetCommitRequestTopic(name=names.topic, partitions=[partition])],
    )
    response = broker.call(ADMIN_HOST, request, OffsetCommitResponse, 9)
    return response.topics[0].partitions[0].error_code == ErrorCode.NONE


def _begins(broker: MatrixBroker, names: Names) -> bool:
    request = InitProducerIdRequest(
        transactional_id=names.transactional_id, transaction_timeout_ms=60_000, producer_id=-1, producer_epoch=-1
    )
    return broker.call(ADMIN_HOST, request, InitProducerIdResponse).error_code == ErrorCode.NONE


def add_acls(broker: MatrixBroker, bindings: Sequence[AclBinding]) -> None:
    creations = [
        AclCreation(
            resource_type=each.resource_type,
            resource_name=each.resource_name,
            resource_pattern_type=each.pattern_type,
            principal=each.principal,
            host=each.host,
            operation=each.operation,
            permission_type=each.permission,
        )
        for each in bindings
    ]
    results = broker.call(ADMIN_HOST, CreateAclsRequest(creations=creations), CreateAclsResponse).results
    assert all(result.error_code == ErrorCode.NONE for result in results), results


def remove_acls(broker: MatrixBroker, bindings: Sequence[AclBinding]) -> None:
    filters = [
        DeleteAclsFilter(
            resource_type_filter=each.resource_type,
            resource_name_filter=each.resource_name,
            pattern_type_filter=each.pattern_type,
            principal_filter=each.principal,
            host_filter=each.host,
            operation=each.operation,
            permission_type=each.permission,
        )
        for each in bindings
    ]
    results = broker.call(ADMIN_HOST, DeleteAclsRequest(filters=filters), DeleteAclsResponse).filter_results
    assert all(result.error_code == ErrorCode.NONE and len(result.matching_acls) == 1 for result in results), results


def _is_effective(broker: MatrixBroker, rights: Rights, names: Names) -> bool:
    """Whether the broker, which may follow its metadata later, has the rights."""
    request = DescribeAclsRequest(
        resource_type_filter=1,
        resource_name_filter=None,
        pattern_type_filter=1,
        principal_filter=None,
        host_filter=CLIENT_HOST,
        operation=1,
        permission_type=1,
    )
    response = broker.call(ADMIN_HOST, request, DescribeAclsResponse)
    return sum(len(resource.acls) for resource in response.resources) == len(rights.bindings(names))
