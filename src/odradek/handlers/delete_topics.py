"""DeleteTopics, versions 1 to 6: by name, from version 6 also by id. Files are renamed at once and removed later."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.controller.requests import DeleteTopics
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
)
from odradek.protocol.sentinels import NO_TOPIC_ID
from odradek.security.authorizer import Operation

if TYPE_CHECKING:
    from uuid import UUID

    from odradek.handlers.context import RequestContext

FIRST_VERSION_WITH_DELETION_DISABLED = 3
FIRST_VERSION_WITH_STRICT_QUOTA = 5
FIRST_VERSION_WITH_TOPIC_IDS = 6


async def handle(request: DeleteTopicsRequest, context: RequestContext) -> DeleteTopicsResponse:
    names: list[str] = []
    topic_ids: list[UUID] = []
    refused: list[DeletableTopicResult] = []
    if context.api_version >= FIRST_VERSION_WITH_TOPIC_IDS:
        for topic in request.topics:
            _classify(topic.name, topic.topic_id, context, names, topic_ids, refused)
    else:
        for name in request.topic_names:
            _classify(name, NO_TOPIC_ID, context, names, topic_ids, refused)
    mutations = context.mutation_quota(strict_from=FIRST_VERSION_WITH_STRICT_QUOTA)
    results = await context.services.controller.ask(
        DeleteTopics(names, topic_ids, mutations=mutations, timeout_ms=request.timeout_ms)
    )
    return DeleteTopicsResponse(
        throttle_time_ms=mutations.throttle_ms,
        responses=refused
        + [
            DeletableTopicResult(
                name=result.name,
                topic_id=result.topic_id or NO_TOPIC_ID,
                error_code=_known_error(result.error, context.api_version),
                error_message=result.message,
            )
            for result in results
        ],
    )


def _known_error(error: ErrorCode, version: int) -> ErrorCode:
    is_unknown = error is ErrorCode.TOPIC_DELETION_DISABLED and version < FIRST_VERSION_WITH_DELETION_DISABLED
    return ErrorCode.INVALID_REQUEST if is_unknown else error


def _classify(
    name: str | None,
    topic_id: UUID,
    context: RequestContext,
    names: list[str],
    topic_ids: list[UUID],
    refused: list[DeletableTopicResult],
) -> None:
    """Add one requested topic to the names or ids to delete, or to the refusals. A topic that the client may describe
    but not delete is known to it; the existence of others is not revealed. What is unknown here is refused here, unless
    the client may delete all topics: the controller may know more topics, which nobody has checked."""
    if (name is None) == (topic_id == NO_TOPIC_ID):
        refused.append(
            DeletableTopicResult(
                name=name,
                topic_id=topic_id,
                error_code=ErrorCode.INVALID_REQUEST,
                error_message="A topic is named by its name or by its id, not by both or neither.",
            )
        )
        return
    error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    may_delete_all = context.allows_on_cluster(Operation.DELETE, logs=False)
    if name is None:
        known = context.services.image.topic_by_id(topic_id)
        if may_delete_all or (known is not None and context.allows_on_topic(Operation.DELETE, known.name)):
            topic_ids.append(topic_id)
            return
        if known is None:
            error = ErrorCode.UNKNOWN_TOPIC_ID
        elif context.allows_on_topic(Operation.DESCRIBE, known.name, logs=False):
            name = known.name
    else:
        if may_delete_all or context.allows_on_topic(Operation.DELETE, name):
            names.append(name)
            return
        if name not in context.services.image.topics and context.allows_on_topic(Operation.DESCRIBE, name, logs=False):
            error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    refused.append(DeletableTopicResult(name=name, topic_id=topic_id, error_code=error))
