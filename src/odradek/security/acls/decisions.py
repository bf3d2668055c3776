"""Whether a principal may perform an operation, and the rule that decides it. Pure; the semantics are those of Kafka's
StandardAuthorizer.

A super user may do everything. Otherwise a DENY rule that applies decides, then an ALLOW rule that applies, then the
permissions of the topic's stream, which Kafka does not have. Without one the operation is denied, except if no rule
names the resource at all and `allow.everyone.if.no.acl.found` is set.
An ALLOW rule for Read, Write, Delete or Alter allows Describe as well, and one for AlterConfigs allows DescribeConfigs;
a DENY rule denies its own operation only.
"""

from __future__ import annotations

import enum
import ipaddress
from typing import TYPE_CHECKING, NamedTuple

from odradek.security.acls.bindings import EVERYONE, WILDCARD, AclBinding, PatternType, Permission
from odradek.security.acls.stream_permissions import StreamPermissions
from odradek.security.authorizer import Operation, ResourceType

if TYPE_CHECKING:
    from odradek.security.acls.index import AclIndex

_ALLOWING: dict[Operation, frozenset[Operation]] = {
    operation: frozenset((operation, Operation.ALL)) for operation in Operation
} | {
    Operation.DESCRIBE: frozenset(
        (Operation.DESCRIBE, Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER, Operation.ALL)
    ),
    Operation.DESCRIBE_CONFIGS: frozenset((Operation.DESCRIBE_CONFIGS, Operation.ALTER_CONFIGS, Operation.ALL)),
}

# Kafka asks for a resource of this name to learn whether a principal has rights on all resources of a type.
_ANY_NAME = "hardcode"


class Reason(enum.Enum):
    """The rule that decided, as the end of a sentence about the decision."""

    SUPER_USER = "super.users names the principal"
    ACL = "an ACL decides"
    STREAM = "a permission of the stream allows it"
    NO_ACL_ALLOWS = "no ACL of the resource applies"
    RESOURCE_WITHOUT_ACLS = "the resource has no ACLs"


class Decision(NamedTuple):
    is_allowed: bool
    reason: Reason
    binding: AclBinding | None = None
    permission: str | None = None


class AccessRules(NamedTuple):
    """The settings that decide together with the access control lists."""

    super_users: frozenset[str] = frozenset()
    allow_without_acls: bool = False


class Actor(NamedTuple):
    principal: str
    host: str


NO_STREAMS = StreamPermissions()
_SUPER_USER = Decision(True, Reason.SUPER_USER)
_DENIED = Decision(False, Reason.NO_ACL_ALLOWS)


def decide(
    index: AclIndex,
    rules: AccessRules,
    actor: Actor,
    operation: Operation,
    resource_type: ResourceType,
    name: str,
    streams: StreamPermissions = NO_STREAMS,
) -> Decision:
    principal, host = actor
    if principal in rules.super_users:
        return _SUPER_USER
    allowing = _ALLOWING[operation]
    allowed_by: AclBinding | None = None
    has_acls = False
    for by_principal in index.rules_for(resource_type, name):
        has_acls = True
        for candidates in (by_principal.get(principal), by_principal.get(EVERYONE)):
            for binding in candidates or ():
                if binding.permission is Permission.DENY:
                    if binding.operation in (operation, Operation.ALL) and is_same_host(binding.host, host):
                        return Decision(False, Reason.ACL, binding)
                elif allowed_by is None and binding.operation in allowing and is_same_host(binding.host, host):
                    allowed_by = binding
    if allowed_by is not None:
        return Decision(True, Reason.ACL, allowed_by)
    if resource_type is ResourceType.TOPIC and (permission := streams.allowing(principal, operation, name)) is not None:
        return Decision(True, Reason.STREAM, permission=permission)
    if has_acls or (resource_type is ResourceType.TOPIC and streams.has_stream_of(name)):
        return _DENIED
    return Decision(rules.allow_without_acls, Reason.RESOURCE_WITHOUT_ACLS)


def decide_for_any(
    index: AclIndex,
    rules: AccessRules,
    actor: Actor,
    operation: Operation,
    resource_type: ResourceType,
    streams: StreamPermissions = NO_STREAMS,
) -> bool:
    """Whether there can be a resource of the type on which the actor may perform the operation (KIP-679)."""
    if decide(index, rules, actor, operation, resource_type, _ANY_NAME).is_allowed:
        return True
    principal, host = actor
    owners = dict.fromkeys((principal, EVERYONE))
    applying = [
        binding
        for owner in owners
        for binding in index.rules_of(resource_type, owner)
        if binding.operation in (operation, Operation.ALL) and is_same_host(binding.host, host)
    ]
    denied = {(each.pattern_type, each.resource_name) for each in applying if each.permission is Permission.DENY}
    if (PatternType.LITERAL, WILDCARD) in denied:
        return False
    denied_prefixes = {name for kind, name in denied if kind is PatternType.PREFIXED}
    lengths = sorted({len(name) for name in denied_prefixes})
    for binding in applying:
        if binding.permission is not Permission.ALLOW:
            continue
        name = binding.resource_name
        if binding.pattern_type is PatternType.LITERAL:
            if name == WILDCARD:
                return True
            if (PatternType.LITERAL, name) in denied:
                continue
        if not any(name[:length] in denied_prefixes for length in lengths if length <= len(name)):
            return True
    return resource_type is ResourceType.TOPIC and streams.allows_any(principal, operation)


def is_same_host(named: str, host: str) -> bool:
    """IPv6 addresses may be written in several ways, and an IPv4 address may be mapped to IPv6."""
    if named in (WILDCARD, host):
        return True
    return (":" in named or ":" in host) and _canonical(named) == _canonical(host)


def _canonical(host: str) -> str:
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return host
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return str(mapped or address)
