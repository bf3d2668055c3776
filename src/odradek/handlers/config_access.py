"""The authorization of requests that read or change settings: one rule for the three APIs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar

from odradek.configuration.config_types import ConfigResourceType
from odradek.controller.decisions.request_results import ConfigResult
from odradek.protocol.errors import ErrorCode
from odradek.security.authorizer import Operation, ResourceType

if TYPE_CHECKING:
    from collections.abc import Iterable

    from odradek.handlers.context import RequestContext


class NamedResource(Protocol):
    """The common fields of resources in AlterConfigs and IncrementalAlterConfigs requests."""

    @property
    def resource_type(self) -> int: ...

    @property
    def resource_name(self) -> str: ...


AnyResource = TypeVar("AnyResource", bound=NamedResource)


def split_by_access(
    context: RequestContext, resources: Iterable[AnyResource], *, logs: bool = True
) -> tuple[list[AnyResource], list[ConfigResult]]:
    """The resources whose settings the principal may alter, and the refusals of the others."""
    allowed: list[AnyResource] = []
    refused: list[ConfigResult] = []
    for resource in resources:
        resource_type, name = resource.resource_type, resource.resource_name
        refusal = config_refusal(context, Operation.ALTER_CONFIGS, resource_type, name, logs=logs)
        if refusal is None:
            allowed.append(resource)
        else:
            refused.append(ConfigResult(resource_type=resource_type, resource_name=name, error=refusal))
    return allowed, refused


def without_refused(resources: Iterable[AnyResource], refused: Iterable[ConfigResult]) -> list[AnyResource]:
    names = {(result.resource_type, result.resource_name) for result in refused}
    return [each for each in resources if (each.resource_type, each.resource_name) not in names]


def config_refusal(
    context: RequestContext, operation: Operation, resource_type: int, resource_name: str, *, logs: bool = True
) -> ErrorCode | None:
    """None when the principal may do it, otherwise the error that the protocol has for it."""
    if resource_type == ConfigResourceType.TOPIC:
        allowed = context.allows_on_topic(operation, resource_name, logs=logs)
        return None if allowed else ErrorCode.TOPIC_AUTHORIZATION_FAILED
    if resource_type == ConfigResourceType.GROUP:
        allowed = context.allows(operation, ResourceType.GROUP, resource_name, logs=logs)
        return None if allowed else ErrorCode.GROUP_AUTHORIZATION_FAILED
    return None if context.allows_on_cluster(operation, logs=logs) else ErrorCode.CLUSTER_AUTHORIZATION_FAILED
