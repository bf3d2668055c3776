"""CreatePartitions, versions 0 to 3: more partitions for a topic that exists."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.controller.decisions.topics import NewPartitions
from odradek.controller.requests import CreatePartitions
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)
from odradek.security.authorizer import Operation

if TYPE_CHECKING:
    from odradek.handlers.context import RequestContext


FIRST_VERSION_WITH_STRICT_QUOTA = 3


async def handle(request: CreatePartitionsRequest, context: RequestContext) -> CreatePartitionsResponse:
    allowed: list[CreatePartitionsTopic] = []
    refused: list[CreatePartitionsTopic] = []
    for topic in request.topics:
        (allowed if context.allows_on_topic(Operation.ALTER, topic.name) else refused).append(topic)
    mutations = context.mutation_quota(strict_from=FIRST_VERSION_WITH_STRICT_QUOTA)
    added = [
        NewPartitions(
            name=topic.name,
            count=topic.count,
            assignments=None
            if topic.assignments is None
            else [tuple(assignment.broker_ids) for assignment in topic.assignments],
        )
        for topic in allowed
    ]
    results = await context.services.controller.ask(
        CreatePartitions(added, validate_only=request.validate_only, mutations=mutations, timeout_ms=request.timeout_ms)
    )
    answers = [
        CreatePartitionsTopicResult(name=result.name or "", error_code=result.error, error_message=result.message)
        for result in results
    ]
    answers += [
        CreatePartitionsTopicResult(name=topic.name, error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        for topic in refused
    ]
    return CreatePartitionsResponse(throttle_time_ms=mutations.throttle_ms, results=answers)
