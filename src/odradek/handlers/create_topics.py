"""CreateTopics, versions 2 to 7.

Departures from Kafka: the topic can be used when the answer comes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.controller.decisions.topics import Assignment, NewTopic
from odradek.controller.requests import CreateTopics
from odradek.handlers.cooperative_scheduling import each_in_turn
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from odradek.protocol.sentinels import NO_TOPIC_ID
from odradek.security.authorizer import Operation

if TYPE_CHECKING:
    from odradek.controller.decisions.request_results import TopicResult
    from odradek.handlers.context import RequestContext


FIRST_VERSION_WITH_STRICT_QUOTA = 6


async def handle(request: CreateTopicsRequest, context: RequestContext) -> CreateTopicsResponse:
    may_create_all = context.allows_on_cluster(Operation.CREATE, logs=False)
    allowed: list[CreatableTopic] = []
    refused: list[CreatableTopic] = []
    for topic in request.topics:
        may_create = may_create_all or context.allows_on_topic(Operation.CREATE, topic.name)
        (allowed if may_create else refused).append(topic)
    mutations = context.mutation_quota(strict_from=FIRST_VERSION_WITH_STRICT_QUOTA)
    results = await context.services.controller.ask(
        CreateTopics(
            [_new_topic(topic) for topic in allowed],
            validate_only=request.validate_only,
            mutations=mutations,
            timeout_ms=request.timeout_ms,
        )
    )
    answers = [_describe(result, request.validate_only, context) async for result in each_in_turn(results)]
    answers += [
        CreatableTopicResult(
            name=topic.name,
            error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED,
            error_message="Authorization failed.",
        )
        for topic in refused
    ]
    return CreateTopicsResponse(throttle_time_ms=mutations.throttle_ms, topics=answers)


def _new_topic(topic: CreatableTopic) -> NewTopic:
    return NewTopic(
        name=topic.name,
        partition_count=topic.num_partitions,
        replication_factor=topic.replication_factor,
        assignments=[Assignment(each.partition_index, tuple(each.broker_ids)) for each in topic.assignments],
        configs={config.name: config.value for config in topic.configs},
    )


def _describe(result: TopicResult, validate_only: bool, context: RequestContext) -> CreatableTopicResult:
    topic = result.topic
    if topic is None:
        return CreatableTopicResult(
            name=result.name or "", error_code=result.error, error_message=result.message, configs=[]
        )
    topic_id = NO_TOPIC_ID if validate_only else topic.topic_id
    if not context.allows_on_topic(Operation.DESCRIBE_CONFIGS, topic.name, logs=False):
        return CreatableTopicResult(
            name=topic.name,
            topic_id=topic_id,
            error_message=None,
            topic_config_error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED,
            configs=[],
        )
    return CreatableTopicResult(
        name=topic.name,
        topic_id=topic_id,
        error_message=None,
        num_partitions=len(topic.partitions),
        replication_factor=len(topic.partitions[0].replicas),
        configs=[
            CreatableTopicConfigs(
                name=entry.name,
                value=entry.value,
                read_only=entry.is_read_only,
                config_source=entry.source,
                is_sensitive=entry.is_sensitive,
            )
            for entry in result.configs
        ],
    )
