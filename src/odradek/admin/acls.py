"""Access control lists: from options to rules and filters, with the shorthands of kafka-acls; their requests; and the
decision of the brokers about an operation, made here from their rules by the same code."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from odradek.admin.broker_requests import in_parts
from odradek.admin.errors import NotAuthorized, check
from odradek.admin.settings import Kind as SettingKind
from odradek.admin.settings import read_settings
from odradek.admin.streams import describe_streams
from odradek.conventions.failures import Failure
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.create_acls import AclCreation, CreateAclsRequest, CreateAclsResponse
from odradek.protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest, DeleteAclsResponse
from odradek.protocol.messages.describe_acls import DescribeAclsRequest, DescribeAclsResponse
from odradek.security.acls.bindings import WILDCARD, AclBinding, AclFilter, PatternType, Permission
from odradek.security.acls.decisions import AccessRules, Actor, Decision, Reason, decide
from odradek.security.acls.index import AclDraft, AclIndex
from odradek.security.acls.stream_permissions import StreamPermissions
from odradek.security.audit.events import pascal_case
from odradek.security.authorizer import CLUSTER_NAME, SUPPORTED_OPERATIONS, Operation, ResourceType

if TYPE_CHECKING:
    from odradek.admin.cluster import Cluster
    from odradek.protocol.messages.delete_acls import DeleteAclsMatchingAcl
    from odradek.protocol.messages.describe_acls import AclDescription, DescribeAclsResource
    from odradek.protocol.schema import Struct

TYPES = {
    "topic": ResourceType.TOPIC, "group": ResourceType.GROUP, "cluster": ResourceType.CLUSTER,
    "transactional-id": ResourceType.TRANSACTIONAL_ID, "delegation-token": ResourceType.DELEGATION_TOKEN,
    "user": ResourceType.USER,
}  # fmt: skip
OPERATIONS = {pascal_case(operation.name): operation for operation in Operation if operation > Operation.ANY}
PRODUCER = {
    ResourceType.TOPIC: (Operation.WRITE, Operation.DESCRIBE, Operation.CREATE),
    ResourceType.TRANSACTIONAL_ID: (Operation.WRITE, Operation.DESCRIBE),
}
CONSUMER = {ResourceType.TOPIC: (Operation.READ, Operation.DESCRIBE), ResourceType.GROUP: (Operation.READ,)}


class Selection(NamedTuple):
    """The resources that the options of a command name."""

    topics: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    transactional_ids: tuple[str, ...] = ()
    cluster: bool = False

    @property
    def resources(self) -> list[tuple[ResourceType, str]]:
        return [
            *((ResourceType.TOPIC, name) for name in self.topics),
            *((ResourceType.GROUP, name) for name in self.groups),
            *((ResourceType.TRANSACTIONAL_ID, name) for name in self.transactional_ids),
            *([(ResourceType.CLUSTER, CLUSTER_NAME)] if self.cluster else []),
        ]


class Access(NamedTuple):
    """What is given: operations, or the roles of a producer or a consumer, which stand for several operations."""

    operations: tuple[Operation, ...] = ()
    producer: bool = False
    consumer: bool = False
    idempotent: bool = False

    def problem(self, selection: Selection) -> str | None:
        """Why these options do not belong together."""
        has_role = self.producer or self.consumer
        if has_role and self.operations:
            return "--operation and --producer or --consumer exclude each other"
        if not has_role and not selection.resources:
            return "name a resource: --topic, --group, --transactional-id or --cluster"
        if has_role and not selection.topics:
            return "--producer and --consumer need --topic"
        if self.consumer and not selection.groups:
            return "--consumer needs --group"
        if self.idempotent and not self.producer:
            return "--idempotent needs --producer"
        if not self.consumer and self.producer and selection.groups:
            return "--producer does not use --group"
        return None

    def rights(self, selection: Selection) -> list[tuple[ResourceType, str, Operation]]:
        """Without operations and roles: all operations."""
        if not (self.producer or self.consumer):
            operations = self.operations or (Operation.ALL,)
            return [(*resource, operation) for resource in selection.resources for operation in operations]
        rights: dict[tuple[ResourceType, str, Operation], None] = {}
        for is_chosen, role in ((self.producer, PRODUCER), (self.consumer, CONSUMER)):
            for kind, name in selection.resources:
                if is_chosen and kind in role:
                    rights |= dict.fromkeys((kind, name, operation) for operation in role[kind])
        if self.idempotent:
            rights[ResourceType.CLUSTER, CLUSTER_NAME, Operation.IDEMPOTENT_WRITE] = None
        return list(rights)


class Subjects(NamedTuple):
    """Who is meant, and from where; a host of `*` means all."""

    principals: tuple[str, ...]
    hosts: tuple[str, ...]
    permission: Permission


def bindings(
    selection: Selection, access: Access, subjects: list[Subjects], pattern_type: PatternType
) -> list[AclBinding]:
    pattern_types = {ResourceType.CLUSTER: PatternType.LITERAL}
    return [
        AclBinding(kind, name, pattern_types.get(kind, pattern_type), principal, host, operation, each.permission)
        for each in subjects
        for principal in each.principals
        for host in each.hosts or (WILDCARD,)
        for kind, name, operation in access.rights(selection)
    ]


def unsupported_operation(access: Access, selection: Selection) -> str | None:
    """An operation that means nothing for a resource of its type, as kafka-acls refuses it."""
    for kind, _, operation in access.rights(selection):
        if operation is not Operation.ALL and operation not in SUPPORTED_OPERATIONS[kind]:
            known = ", ".join(sorted(pascal_case(each.name) for each in SUPPORTED_OPERATIONS[kind]))
            return f"{pascal_case(operation.name)} is no operation on a {type_name(kind)}: choose from {known} or All"
    return None


def filters(selection: Selection, pattern_type: PatternType) -> list[AclFilter]:
    """A filter for each resource; without resources, one that matches everything."""
    if not selection.resources:
        return [AclFilter(ResourceType.ANY, None, pattern_type)]
    return [AclFilter(kind, name, pattern_type) for kind, name in selection.resources]


def type_name(kind: ResourceType) -> str:
    return next(name for name, each in TYPES.items() if each is kind)


def checked_principal(text: str) -> str:
    """`User:alice`. ValueError for a name without a type, which is taken for a mistake, as in kafka-acls."""
    kind, colon, name = text.partition(":")
    if not (kind and colon and name) or not text.isprintable():
        raise ValueError(f"{text[:60]!r} is not TYPE:NAME, such as User:alice or User:*")
    return text


def parse_resource(text: str) -> tuple[ResourceType, str] | None:
    """`topic:orders`, `group:billing`, `transactional-id:payments`, `user:User:bob`, `delegation-token:ID`, `cluster`;
    None for anything else."""
    kind, colon, name = text.partition(":")
    if kind == "cluster" and (not colon or name == CLUSTER_NAME):
        return ResourceType.CLUSTER, CLUSTER_NAME
    return (TYPES[kind], name) if kind in TYPES and kind != "cluster" and name else None


def describe(binding: AclBinding) -> str:
    """A rule in a sentence."""
    verb = "may" if binding.permission is Permission.ALLOW else "may not"
    kind, name = type_name(binding.resource_type), binding.resource_name
    what = f"every {kind}" if name == WILDCARD else f"{kind} {name}"
    if binding.resource_type is ResourceType.CLUSTER:
        what = "the cluster"
    elif binding.pattern_type is PatternType.PREFIXED:
        what = f"{kind}s that begin with {name}"
    hosts = "from every host" if binding.host == WILDCARD else f"from {binding.host}"
    operation = "do everything" if binding.operation is Operation.ALL else pascal_case(binding.operation.name)
    return f"{binding.principal} {verb} {operation} on {what} {hosts}"


def as_row(binding: AclBinding) -> dict[str, str]:
    return {
        "resource_type": type_name(binding.resource_type),
        "resource": binding.resource_name,
        "pattern": binding.pattern_type.name.lower(),
        "principal": binding.principal,
        "host": binding.host,
        "operation": pascal_case(binding.operation.name),
        "permission": pascal_case(binding.permission.name),
    }


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
    pattern = ResourceType(resource.resource_type), resource.resource_name, PatternType(resource.pattern_type)
    return AclBinding(*pattern, rule.principal, rule.host, Operation(rule.operation), Permission(rule.permission_type))


class NoAuthorizer(Failure):
    """The brokers have no access control lists."""


def _check(error_code: int, message: str | None, operation: str) -> None:
    if error_code == ErrorCode.SECURITY_DISABLED:
        raise NoAuthorizer("the brokers have no access control lists (SECURITY_DISABLED); set authorizer.class.name")
    check(error_code, message, "acl", operation)


class CheckedAccess(NamedTuple):
    """`knows_settings` is false if the brokers do not show the settings that decide together with the rules.
    `expression` is the permission of the stream that decides, `unknown` what of the stream is not known here."""

    decision: Decision
    knows_settings: bool
    expression: str = ""
    unknown: str = ""


class _Stream(NamedTuple):
    permissions: Mapping[str, str]


def check_access(
    cluster: Cluster, principal: str, operation: Operation, kind: ResourceType, name: str, host: str = WILDCARD
) -> CheckedAccess:
    draft = AclDraft(AclIndex())
    for rule in find(cluster, [AclFilter(kind, name, PatternType.MATCH)]):
        draft.add(rule)
    settings = read_access_settings(cluster)
    path = name.rpartition(":")[0] if kind is ResourceType.TOPIC else ""
    permissions, unknown = _permissions_of(cluster, path) if path.startswith("/") else ({}, "")
    streams = StreamPermissions({path: _Stream(permissions)} if permissions else {})
    decision = decide(draft.finish(), settings or AccessRules(), Actor(principal, host), operation, kind, name, streams)
    is_final = decision.reason in (Reason.ACL, Reason.SUPER_USER)
    expression = permissions.get(decision.permission or "", "")
    return CheckedAccess(decision, settings is not None, expression, "" if is_final else unknown)


def _permissions_of(cluster: Cluster, path: str) -> tuple[Mapping[str, str], str]:
    """Those of a stream, and what of them is not known: brokers alone know who is in which group."""
    try:
        (found,) = describe_streams(cluster, [path])
    except Failure as failure:
        return {}, f"the permissions of {path} are not known: {failure.message}"
    permissions = {each.name: each.expression for each in found.permissions}
    if not permissions:
        return {}, f"the permissions of {path} are shown to those who may change them"
    if any(re.search(r"\b[gr]:", each) for each in permissions.values()):
        return permissions, f"permissions of {path} name groups or roles, whose members only the brokers know"
    return permissions, ""


def read_access_settings(cluster: Cluster) -> AccessRules | None:
    """Those of a broker; None without DescribeConfigs on the cluster, and of Apache Kafka, which hides them."""
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


def explanation(decision: Decision, expression: str = "") -> str:
    """The rule, the permission of the stream, or the setting that decides."""
    if decision.permission is not None:
        return f"the stream's permission {decision.permission}: {expression}"
    if decision.binding is not None:
        return f"rule: {describe(decision.binding)}"
    if decision.reason is Reason.RESOURCE_WITHOUT_ACLS:
        setting = "true" if decision.is_allowed else "false"
        return f"{decision.reason.value}, and {SETTINGS[1]} is {setting}"
    return str(decision.reason.value)
