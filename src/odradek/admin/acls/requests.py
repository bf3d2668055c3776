"""The requests of access control lists, over sockets of our own: the client library does not know users and delegation
tokens as resources, nor all operations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.admin.broker_requests import BrokerRequests
from odradek.admin.errors import check
from odradek.admin.request_parts import in_parts
from odradek.conventions.failures import Failure
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.create_acls import AclCreation, CreateAclsRequest, CreateAclsResponse
from odradek.protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest, DeleteAclsResponse
from odradek.protocol.messages.describe_acls import DescribeAclsRequest, DescribeAclsResponse
from odradek.security.acls.bindings import AclBinding, AclFilter, PatternType, Permission
from odradek.security.authorizer import Operation, ResourceType

if TYPE_CHECKING:
    from collections.abc import Iterable

    from odradek.admin.cluster import Cluster
    from odradek.protocol.messages.delete_acls import DeleteAclsMatchingAcl
    from odradek.protocol.messages.describe_acls import AclDescription, DescribeAclsResource

VERSION = 2  # the same fields as 3, which brokers before Apache Kafka 3.3 lack
RULES_PER_REQUEST = 1_000


def create(cluster: Cluster, bindings: Iterable[AclBinding]) -> None:
    requests = BrokerRequests(cluster)
    for part in in_parts(dict.fromkeys(bindings), RULES_PER_REQUEST):
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
            for each in part
        ]
        answer = requests.ask_controller(CreateAclsRequest(creations=creations), CreateAclsResponse, VERSION)
        for result in answer.results:
            _check(result.error_code, result.error_message, "Alter")


def find(cluster: Cluster, filters: Iterable[AclFilter]) -> list[AclBinding]:
    """The rules that any of the filters matches, each once."""
    requests = BrokerRequests(cluster)
    found: set[AclBinding] = set()
    for acl_filter in filters:
        answer = requests.ask_any(describe_request(acl_filter), DescribeAclsResponse, VERSION)
        _check(answer.error_code, answer.error_message, "Describe")
        found.update(described_bindings(answer))
    return sorted(found)


def delete(cluster: Cluster, bindings: Iterable[AclBinding]) -> list[AclBinding]:
    """Exactly these rules; those that another administrator has removed meanwhile are not in the result."""
    requests = BrokerRequests(cluster)
    removed: list[AclBinding] = []
    for part in in_parts(bindings, RULES_PER_REQUEST):
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
            for each in part
        ]
        answer = requests.ask_controller(DeleteAclsRequest(filters=filters), DeleteAclsResponse, VERSION)
        for result in answer.filter_results:
            _check(result.error_code, result.error_message, "Alter")
            for each in result.matching_acls:
                _check(each.error_code, each.error_message, "Alter")
                removed.append(_binding(each, each))
    return sorted(removed)


def describe_request(acl_filter: AclFilter) -> DescribeAclsRequest:
    return DescribeAclsRequest(
        resource_type_filter=acl_filter.resource_type,
        resource_name_filter=acl_filter.resource_name,
        pattern_type_filter=acl_filter.pattern_type,
        principal_filter=acl_filter.principal,
        host_filter=acl_filter.host,
        operation=acl_filter.operation,
        permission_type=acl_filter.permission,
    )


def described_bindings(answer: DescribeAclsResponse) -> list[AclBinding]:
    return [_binding(resource, each) for resource in answer.resources for each in resource.acls]


def _binding(
    resource: DescribeAclsResource | DeleteAclsMatchingAcl, rule: AclDescription | DeleteAclsMatchingAcl
) -> AclBinding:
    """Responses to DeleteAcls have resource and rule in one, those to DescribeAcls apart."""
    return AclBinding(
        ResourceType(resource.resource_type),
        resource.resource_name,
        PatternType(resource.pattern_type),
        rule.principal,
        rule.host,
        Operation(rule.operation),
        Permission(rule.permission_type),
    )


class NoAuthorizer(Failure):
    """The brokers have no access control lists."""


def _check(error_code: int, message: str | None, operation: str) -> None:
    if error_code == ErrorCode.SECURITY_DISABLED:
        raise NoAuthorizer("the brokers have no access control lists (SECURITY_DISABLED); set authorizer.class.name")
    check(error_code, message, "acl", operation)
