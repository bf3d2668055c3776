"""Who may see or change the settings of which resource: one rule for the three APIs about settings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.metadata.config_types import ConfigResourceType
from odradek.protocol.errors import ErrorCode
from odradek.security.authorizer import Operation, ResourceType

if TYPE_CHECKING:
    from odradek.handlers.context import RequestContext


def config_refusal(
    context: RequestContext, operation: Operation, resource_type: int, resource_name: str
) -> ErrorCode | None:
    """None when the principal may do it, otherwise the error that the protocol has for it."""
    if resource_type == ConfigResourceType.TOPIC:
        allowed = context.allows_on_topic(operation, resource_name)
        return None if allowed else ErrorCode.TOPIC_AUTHORIZATION_FAILED
    if resource_type == ConfigResourceType.GROUP:
        allowed = context.allows(operation, ResourceType.GROUP, resource_name)
        return None if allowed else ErrorCode.GROUP_AUTHORIZATION_FAILED
    return None if context.allows_on_cluster(operation) else ErrorCode.CLUSTER_AUTHORIZATION_FAILED
