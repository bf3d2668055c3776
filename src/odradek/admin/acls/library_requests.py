"""The requests of `odradek acl` through the client library, for SASL mechanisms that it alone has."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from odradek.admin import kafka_admin as kafka
from odradek.cli.framework.output import note
from odradek.security.acls.bindings import AclBinding, AclFilter, PatternType, Permission
from odradek.security.authorizer import Operation, ResourceType

if TYPE_CHECKING:
    from collections.abc import Iterable

    from odradek.admin.cluster import Cluster

REQUEST_TIMEOUT_S = 15.0
TYPES = (ResourceType.TOPIC, ResourceType.GROUP, ResourceType.CLUSTER, ResourceType.TRANSACTIONAL_ID)


def create(cluster: Cluster, bindings: Iterable[AclBinding]) -> None:
    theirs = [_binding(each) for each in dict.fromkeys(bindings)]
    for future in cluster.admin().create_acls(theirs, request_timeout=REQUEST_TIMEOUT_S).values():
        cluster.finish(future, "acl", "Alter")


def find(cluster: Cluster, filters: Iterable[AclFilter]) -> list[AclBinding]:
    """The rules that any of the filters matches, each once."""
    found: dict[AclBinding, None] = {}
    of_type = (
        each._replace(resource_type=kind)
        for each in filters
        for kind in (TYPES if each.resource_type is ResourceType.ANY else (each.resource_type,))
    )
    for acl_filter in of_type:
        future = cluster.admin().describe_acls(_filter(acl_filter), request_timeout=REQUEST_TIMEOUT_S)
        found |= dict.fromkeys(_ours(each) for each in cluster.finish(future, "acl", "Describe"))
    if not found:
        # The client library returns an empty list in place of an error.
        note("no rules, or no right to list them: this needs Describe on the cluster")
    return sorted(found)


def delete(cluster: Cluster, bindings: Iterable[AclBinding]) -> list[AclBinding]:
    """Exactly these rules; those that another administrator has removed meanwhile are not in the result."""
    theirs = [_filter(AclFilter(*each)) for each in bindings]
    removed: list[AclBinding] = []
    for future in cluster.admin().delete_acls(theirs, request_timeout=REQUEST_TIMEOUT_S).values():
        removed += [_ours(each) for each in cluster.finish(future, "acl", "Alter")]
    return sorted(removed)


def _binding(binding: AclBinding) -> kafka.AclBinding:
    return kafka.AclBinding(
        kafka.ResourceType(int(binding.resource_type)),
        binding.resource_name,
        kafka.ResourcePatternType(int(binding.pattern_type)),
        binding.principal,
        binding.host,
        kafka.AclOperation(int(binding.operation)),
        kafka.AclPermissionType(int(binding.permission)),
    )


def _filter(acl_filter: AclFilter) -> kafka.AclBindingFilter:
    new_filter: Any = kafka.AclBindingFilter  # its annotations leave out None, which matches everything
    filtered: kafka.AclBindingFilter = new_filter(
        kafka.ResourceType(int(acl_filter.resource_type)),
        acl_filter.resource_name,
        kafka.ResourcePatternType(int(acl_filter.pattern_type)),
        acl_filter.principal,
        acl_filter.host,
        kafka.AclOperation(int(acl_filter.operation)),
        kafka.AclPermissionType(int(acl_filter.permission)),
    )
    return filtered


def _ours(binding: Any) -> AclBinding:
    return AclBinding(
        ResourceType(binding.restype.value),
        binding.name,
        PatternType(binding.resource_pattern_type.value),
        binding.principal,
        binding.host,
        Operation(binding.operation.value),
        Permission(binding.permission_type.value),
    )
