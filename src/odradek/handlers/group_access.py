"""Functions that the handlers of group APIs share: authorization, and finding the shard of a group."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from odradek.protocol.errors import ErrorCode
from odradek.security.authorizer import Operation, ResourceType

if TYPE_CHECKING:
    from odradek.coordinator.groups.group_shard import GroupShard
    from odradek.handlers.context import RequestContext

_GROUP = ResourceType.GROUP  # looking up an attribute of an enum is slow


def allows_on_group(context: RequestContext, operation: Operation, group_id: str, *, logs: bool = True) -> bool:
    return context.allows(operation, _GROUP, group_id, logs=logs)


def offers_consumer_protocol(context: RequestContext) -> bool:
    protocols = cast("list[str]", context.services.config.values["group.coordinator.rebalance.protocols"])
    return "consumer" in (protocol.lower() for protocol in protocols)


def find_shard(
    context: RequestContext, operation: Operation, group_id: str, *, may_be_nameless: bool = False
) -> GroupShard | ErrorCode:
    """The group's shard, or the error if it cannot be used. The empty id is legal where only offsets are concerned."""
    if not allows_on_group(context, operation, group_id):
        return ErrorCode.GROUP_AUTHORIZATION_FAILED
    if not group_id and not may_be_nameless:
        return ErrorCode.INVALID_GROUP_ID
    return context.services.groups.find(group_id)
