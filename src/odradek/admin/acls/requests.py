"""Access control lists over the wire, and the decision of the brokers about an operation, made here from their rules by
the same code."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeVar

from odradek.admin.acls.rules import describe
from odradek.admin.broker_requests import in_parts
from odradek.admin.errors import NotAuthorized, check
from odradek.admin.settings import Kind as SettingKind
from odradek.admin.settings import read_settings
from odradek.conventions.failures import Failure
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.create_acls import AclCreation, CreateAclsRequest, CreateAclsResponse
from odradek.protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest, DeleteAclsResponse
from odradek.protocol.messages.describe_acls import DescribeAclsRequest, DescribeAclsResponse
from odradek.security.acls.bindings import WILDCARD, AclBinding, AclFilter, PatternType, Permission
from odradek.security.acls.decisions import AccessRules, Actor, Decision, Reason, decide
from odradek.security.acls.index import AclDraft, AclIndex
from odradek.security.authorizer import Operation, ResourceType

if TYPE_CHECKING:
    from collections.abc import Iterable

    from odradek.admin.cluster import Cluster
    from odradek.protocol.messages.delete_acls import DeleteAclsMatchingAcl
    from odradek.protocol.messages.describe_acls import AclDescription, DescribeAclsResource
    from odradek.protocol.schema import Struct

S = TypeVar("S", bound="Struct")
VERSION = 2  # the same fields as 3, which brokers before Apache Kafka 3.3 lack
RULES_PER_REQUEST = 1_000
SETTINGS = ("super.users", "allow.everyone.if.no.acl.found")
UNKNOWN_SETTINGS = "super.users and allow.everyone.if.no.acl.found of the brokers are not known"


def create(cluster: Cluster, bindings: Iterable[AclBinding]) -> None:
    for part in in_parts(dict.fromkeys(bindings), RULES_PER_REQUEST):
        request = CreateAclsRequest(creations=[_message(AclCreation, each) for each in part])
        answer = cluster.requests.ask_controller(request, CreateAclsResponse, VERSION)
        for result in answer.results:
            _check(result.error_code, result.error_message, "Alter")


def find(cluster: Cluster, filters: Iterable[AclFilter]) -> list[AclBinding]:
    """The rules that any of the filters matches, each once."""
    found: set[AclBinding] = set()
    for acl_filter in filters:
        answer = cluster.requests.ask_any(_message(DescribeAclsRequest, acl_filter), DescribeAclsResponse, VERSION)
        _check(answer.error_code, answer.error_message, "Describe")
        found.update(_binding(resource, each) for resource in answer.resources for each in resource.acls)
    return sorted(found)


def delete(cluster: Cluster, bindings: Iterable[AclBinding]) -> list[AclBinding]:
    """Exactly these rules; those that another administrator has removed meanwhile are not in the result."""
    removed: list[AclBinding] = []
    for part in in_parts(bindings, RULES_PER_REQUEST):
        request = DeleteAclsRequest(filters=[_message(DeleteAclsFilter, each) for each in part])
        answer = cluster.requests.ask_controller(request, DeleteAclsResponse, VERSION)
        for result in answer.filter_results:
            _check(result.error_code, result.error_message, "Alter")
            for each in result.matching_acls:
                _check(each.error_code, each.error_message, "Alter")
                removed.append(_binding(each, each))
    return sorted(removed)


def _message(kind: type[S], rule: AclBinding | AclFilter) -> S:
    """The messages about rules and filters have the fields of these, in the same order."""
    return kind(**{field.name: value for field, value in zip(kind.fields, rule, strict=True)})


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


class CheckedAccess(NamedTuple):
    """`knows_settings` is false if the brokers do not show the settings that decide together with the rules."""

    decision: Decision
    knows_settings: bool


def check_access(
    cluster: Cluster, principal: str, operation: Operation, kind: ResourceType, name: str, host: str = WILDCARD
) -> CheckedAccess:
    draft = AclDraft(AclIndex())
    for rule in find(cluster, [AclFilter(kind, name, PatternType.MATCH)]):
        draft.add(rule)
    settings = read_access_settings(cluster)
    decision = decide(draft.finish(), settings or AccessRules(), Actor(principal, host), operation, kind, name)
    return CheckedAccess(decision, settings is not None)


def read_access_settings(cluster: Cluster) -> AccessRules | None:
    """The settings of one broker; None if it does not show them: Apache Kafka does not, nor does a broker to a user
    without DescribeConfigs on the cluster."""
    brokers, _metadata = cluster.requests.metadata([])
    try:
        found = read_settings(cluster, SettingKind.BROKER, str(next(iter(brokers))))
    except NotAuthorized:
        return None
    values = {each.name: each.value for each in found if each.name in SETTINGS}
    if SETTINGS[0] not in values:
        return None
    names = (values.get(SETTINGS[0]) or "").split(";")
    return AccessRules(frozenset(name.strip() for name in names if name.strip()), values.get(SETTINGS[1]) == "true")


def explanation(decision: Decision) -> str:
    """The rule or the setting that decides."""
    if decision.binding is not None:
        return f"rule: {describe(decision.binding)}"
    if decision.reason is Reason.RESOURCE_WITHOUT_ACLS:
        setting = "true" if decision.is_allowed else "false"
        return f"{decision.reason.value}, and {SETTINGS[1]} is {setting}"
    return str(decision.reason.value)
