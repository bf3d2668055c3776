"""Requests that add or remove access control lists: Kafka's validation, one result for each rule or filter. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from odradek.metadata.changes import AclsAdded, AclsRemoved
from odradek.protocol.errors import ErrorCode
from odradek.protocol.refusal import Refusal
from odradek.security.acls.bindings import AclBinding, AclFilter, PatternType, Permission
from odradek.security.authorizer import CLUSTER_NAME, Operation, ResourceType

if TYPE_CHECKING:
    from collections.abc import Sequence

    from odradek.controller.decisions.topics import Cluster
    from odradek.metadata.changes import Change

MOST_CHANGES = 10_000  # in one request
_TOO_MANY = Refusal(ErrorCode.POLICY_VIOLATION, "Unable to perform excessively large batch operation.")


class AclDeletion(NamedTuple):
    """The outcome for one filter: the rules that it has removed, or why it has removed none."""

    refusal: Refusal | None = None
    bindings: tuple[AclBinding, ...] = ()


def decide_acl_creations(bindings: Sequence[AclBinding], cluster: Cluster) -> tuple[list[Refusal | None], list[Change]]:
    """A rule that exists is not an error."""
    results = [acl_refusal(binding) for binding in bindings]
    accepted = dict.fromkeys(binding for binding, refusal in zip(bindings, results, strict=True) if refusal is None)
    new = tuple(binding for binding in accepted if binding not in cluster.image.acls.bindings)
    if len(new) > MOST_CHANGES:
        return refuse_acl_creations(bindings, _TOO_MANY), []
    return results, [AclsAdded(new)] if new else []


def decide_acl_deletions(filters: Sequence[AclFilter], cluster: Cluster) -> tuple[list[AclDeletion], list[Change]]:
    """A rule that several filters match is in the results of each."""
    index = cluster.image.acls
    results = [
        AclDeletion(refusal) if refusal is not None else AclDeletion(bindings=tuple(index.matching(each)))
        for each in filters
        for refusal in (filter_refusal(each),)
    ]
    removed = tuple(dict.fromkeys(binding for result in results for binding in result.bindings))
    if len(removed) > MOST_CHANGES:
        return refuse_acl_deletions(filters, _TOO_MANY), []
    return results, [AclsRemoved(removed)] if removed else []


def refuse_acl_creations(bindings: Sequence[AclBinding], refusal: Refusal) -> list[Refusal | None]:
    return [refusal] * len(bindings)


def refuse_acl_deletions(filters: Sequence[AclFilter], refusal: Refusal) -> list[AclDeletion]:
    return [AclDeletion(refusal)] * len(filters)


def acl_refusal(binding: AclBinding) -> Refusal | None:
    if binding.resource_type is ResourceType.CLUSTER and binding.resource_name != CLUSTER_NAME:
        return _invalid(f"The only valid name for the CLUSTER resource is {CLUSTER_NAME}")
    if not binding.resource_name:
        return _invalid("Invalid empty resource name")
    if binding.resource_type in (ResourceType.UNKNOWN, ResourceType.ANY):
        return _invalid(f"Invalid resourceType {binding.resource_type.name}")
    if binding.pattern_type not in (PatternType.LITERAL, PatternType.PREFIXED):
        return _invalid(f"Invalid patternType {binding.pattern_type.name}")
    if binding.operation in (Operation.UNKNOWN, Operation.ANY):
        return _invalid(f"Invalid operation {binding.operation.name}")
    if binding.permission not in (Permission.DENY, Permission.ALLOW):
        return _invalid(f"Invalid permissionType {binding.permission.name}")
    if ":" not in binding.principal:
        return _invalid(
            f"Could not parse principal from `{binding.principal}` "
            "(no colon is present separating the principal type from the principal name)"
        )
    return None


def filter_refusal(acl_filter: AclFilter) -> Refusal | None:
    if acl_filter.resource_type is ResourceType.UNKNOWN or acl_filter.pattern_type is PatternType.UNKNOWN:
        return _invalid("Unknown patternFilter.")
    if acl_filter.operation is Operation.UNKNOWN or acl_filter.permission is Permission.UNKNOWN:
        return _invalid("Unknown entryFilter.")
    return None


def _invalid(message: str) -> Refusal:
    return Refusal(ErrorCode.INVALID_REQUEST, message)
