"""ConsumerGroupHeartbeat, versions 0 and 1: the one request of a member of a consumer group (KIP-848)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from odradek.coordinator.groups.consumer.heartbeat import ConsumerHeartbeat
from odradek.coordinator.groups.consumer.members import JOIN_EPOCH, LEAVE_EPOCH, LEAVE_STATIC_EPOCH
from odradek.coordinator.groups.consumer.topic_patterns import InvalidPattern
from odradek.coordinator.pattern_matching import PatternsStopped
from odradek.coordinator.runtime.waiting_response import WaitingResponse
from odradek.handlers.group_access import allows_on_group, offers_consumer_protocol
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from odradek.protocol.refusal import Refusal
from odradek.security.authorizer import Operation

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from odradek.coordinator.groups.consumer.patterns import MatchedPatterns
    from odradek.coordinator.groups.group_shard import GroupShard
    from odradek.handlers.context import RequestContext

FIRST_VERSION_WITH_CLIENTS_MEMBER_ID = 1  # KIP-1082


def handle(
    request: ConsumerGroupHeartbeatRequest, context: RequestContext
) -> ConsumerGroupHeartbeatResponse | Awaitable[ConsumerGroupHeartbeatResponse]:
    groups = context.services.groups
    refusal = _check_access(request, context) or _check(request, context)
    if refusal is not None:
        return ConsumerGroupHeartbeatResponse(error_code=refusal.error, error_message=refusal.message)
    shard = groups.find(request.group_id)
    if isinstance(shard, ErrorCode):
        return _refuse(shard)
    if not request.member_id:
        request.member_id = str(context.services.host.entropy.uuid())
    pattern = request.subscribed_topic_regex
    if pattern and not shard.knows_pattern(request.group_id, pattern):
        return _match_first(request, pattern, context)
    return _beat(shard, request, None, context)


def _beat(
    shard: GroupShard, request: ConsumerGroupHeartbeatRequest, matched: MatchedPatterns | None, context: RequestContext
) -> ConsumerGroupHeartbeatResponse | Awaitable[ConsumerGroupHeartbeatResponse]:
    response = WaitingResponse(_refuse)
    shard.consumer_heartbeat(
        ConsumerHeartbeat(
            request,
            context.client_id or "",
            f"/{context.connection.host}",
            partial(context.allows_on_topic, Operation.DESCRIBE, logs=False),
            response,
            matched,
        )
    )
    answer: ConsumerGroupHeartbeatResponse | Awaitable[ConsumerGroupHeartbeatResponse] = response.result()
    return answer


def _refuse(error: ErrorCode) -> ConsumerGroupHeartbeatResponse:
    return ConsumerGroupHeartbeatResponse(error_code=error)


async def _match_first(
    request: ConsumerGroupHeartbeatRequest, pattern: str, context: RequestContext
) -> ConsumerGroupHeartbeatResponse:
    """Matching a pattern with the names of all topics may take long; only the request that brings the pattern waits."""
    groups = context.services.groups
    if groups.pattern_matching.are_full:
        return _refuse(ErrorCode.COORDINATOR_NOT_AVAILABLE)  # clients try again after a pause
    try:
        matched = await groups.match_new(pattern)
    except InvalidPattern as problem:
        message = f"SubscribedTopicRegex `{pattern}` is not a valid regular expression: {problem}."
        error = ErrorCode.INVALID_REGULAR_EXPRESSION
        return ConsumerGroupHeartbeatResponse(error_code=error, error_message=message)
    except PatternsStopped:
        return _refuse(ErrorCode.NOT_COORDINATOR)
    shard = groups.find(request.group_id)
    if isinstance(shard, ErrorCode):
        return _refuse(shard)
    answer = _beat(shard, request, matched, context)
    return answer if isinstance(answer, ConsumerGroupHeartbeatResponse) else await answer


def _check_access(request: ConsumerGroupHeartbeatRequest, context: RequestContext) -> Refusal | None:
    if not offers_consumer_protocol(context):
        return Refusal(ErrorCode.UNSUPPORTED_VERSION)
    if not allows_on_group(context, Operation.READ, request.group_id):
        return Refusal(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    names = request.subscribed_topic_names or ()
    if not all(context.allows_on_topic(Operation.DESCRIBE, name) for name in names):
        return Refusal(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    return None


def _check(request: ConsumerGroupHeartbeatRequest, context: RequestContext) -> Refusal | None:
    epoch = request.member_epoch
    brings_id = context.api_version >= FIRST_VERSION_WITH_CLIENTS_MEMBER_ID or epoch > 0 or epoch == LEAVE_EPOCH
    if brings_id and not request.member_id.strip():
        return _invalid("MemberId can't be empty.")
    for name, value in (
        ("GroupId", request.group_id),
        ("InstanceId", request.instance_id),
        ("RackId", request.rack_id),
    ):
        if value is not None and not value.strip():
            return _invalid(f"{name} can't be empty.")
    if epoch == JOIN_EPOCH:
        if request.rebalance_timeout_ms == -1:
            return _invalid("RebalanceTimeoutMs must be provided in first request.")
        if request.topic_partitions is None or request.topic_partitions:
            return _invalid("TopicPartitions must be empty when (re-)joining.")
        if request.subscribed_topic_names is None and request.subscribed_topic_regex is None:
            return _invalid("Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining.")
    elif epoch == LEAVE_STATIC_EPOCH and request.instance_id is None:
        return _invalid("InstanceId can't be null.")
    elif epoch < LEAVE_STATIC_EPOCH:
        return _invalid("MemberEpoch is invalid.")
    assignors = context.services.groups.settings().consumer_assignors
    if request.server_assignor is not None and request.server_assignor not in assignors:
        message = f"ServerAssignor {request.server_assignor} is not supported. Supported assignors: "
        return Refusal(ErrorCode.UNSUPPORTED_ASSIGNOR, f"{message}{', '.join(assignors)}.")
    return None


def _invalid(message: str) -> Refusal:
    return Refusal(ErrorCode.INVALID_REQUEST, message)
