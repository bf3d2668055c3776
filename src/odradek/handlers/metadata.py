"""Metadata, versions 0 to 13: the addresses of the brokers, and the leader of each partition.

Departures from Kafka: a topic that is created automatically is in the answer of the request that creates it, unless
that takes more than 2 s; Kafka answers that request with an error that makes the client retry. A broker is listed for
15 s after it was fenced, except to Kafka's Java clients.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from odradek.controller.decisions.topics import MAX_PARTITIONS_PER_REQUEST, NewTopic, default_partitions
from odradek.controller.requests import CreateTopics
from odradek.coordinator.groups.group_coordinator import OFFSETS_TOPIC
from odradek.coordinator.transactions.transaction_coordinator import TRANSACTIONS_TOPIC
from odradek.handlers.broker_endpoints import listed_brokers
from odradek.handlers.cooperative_scheduling import ELEMENTS_PER_TURN, each_in_turn
from odradek.handlers.partition_state import partition_state
from odradek.host.logs import get_logger
from odradek.metadata.store import StoreError
from odradek.metadata.streams import is_stream_topic, split_alias
from odradek.metadata.topic_names import illegal_name_reason, is_internal
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from odradek.protocol.sentinels import NO_TOPIC_ID
from odradek.security.authorizer import Operation, ResourceType

if TYPE_CHECKING:
    from collections.abc import Awaitable, Iterable

    from odradek.handlers.context import RequestContext
    from odradek.metadata.entities import TopicImage
    from odradek.security.quotas.mutation_quota import MutationQuota

log = get_logger(__name__)

CREATION_TIMEOUT_S = 2.0
OUTCOME_TIMEOUT_S = 15.0
"""Longer than the channel waits for the controller. Topics that are not created by then do not count for the quota."""
FIRST_VERSION_WITH_EMPTY_LIST = 1
FIRST_VERSION_WITH_LISTENER_NOT_FOUND = 6
FIRST_VERSION_WITH_TOPIC_IDS = 12
LAST_VERSION_WITH_CLUSTER_OPERATIONS = 10


def handle(request: MetadataRequest, context: RequestContext) -> MetadataResponse | Awaitable[MetadataResponse]:
    missing = _topics_to_create(request, context)
    if missing:
        return _create_then_answer(request, context, missing)
    if request.topics is not None and len(request.topics) > ELEMENTS_PER_TURN:
        return _answer_in_turns(request, context)
    return _answer(request, context, _topics(request, context))


def _topics_to_create(request: MetadataRequest, context: RequestContext) -> list[str]:
    """The requested topics that do not exist and may be created automatically for this client."""
    services = context.services
    if not (request.topics and request.allow_auto_topic_creation):
        return []
    topics = services.image.topics
    missing = [
        topic.name
        for topic in request.topics
        if topic.name is not None
        and topic.topic_id == NO_TOPIC_ID
        and topic.name not in topics
        and illegal_name_reason(topic.name) is None
        and _is_created_on_demand(topic.name, context)
        and context.allows_on_topic(Operation.DESCRIBE, topic.name, logs=False)
        and _allows_creation(topic.name, context)
    ]
    # The controller refuses a request with more partitions, but only after it has checked each topic.
    partitions = sum(default_partitions(name, services.image, services.config) for name in missing)
    return missing if partitions <= MAX_PARTITIONS_PER_REQUEST else []


def _is_created_on_demand(name: str, context: RequestContext) -> bool:
    """A stream has a setting of its own for its topics. A name that may be an alias is not made an ordinary topic: its
    stream may have been deleted a moment ago."""
    if is_stream_topic(name):
        stream = context.services.image.stream_of(name)
        return stream is not None and stream.creates_topics
    return context.services.config.auto_create_topics_enable and split_alias(name) is None


def _allows_creation(name: str, context: RequestContext) -> bool:
    return context.allows_on_cluster(Operation.CREATE, logs=False) or context.allows_on_topic(Operation.CREATE, name)


async def _create_then_answer(
    request: MetadataRequest, context: RequestContext, missing: list[str]
) -> MetadataResponse:
    """The answer has no topic that could not be created in time. The requests behind it on the connection, and the
    other topics, do not wait for a controller that is away."""
    try:
        async with asyncio.timeout(CREATION_TIMEOUT_S):
            await _create(missing, context)
    except (StoreError, TimeoutError) as problem:
        reason = str(problem) or f"not within {CREATION_TIMEOUT_S:g} s"
        log.warning("topics could not be created on demand", count=len(missing), reason=reason)
    return await _answer_in_turns(request, context)


async def _create(missing: list[str], context: RequestContext) -> None:
    services = context.services
    if OFFSETS_TOPIC in missing:
        await services.groups.topic.ensure()  # it has settings of its own, also when it is created here
    if TRANSACTIONS_TOPIC in missing:
        await services.transactions.topic.ensure()
    mutations = context.mutation_quota(strict_from=0)
    ordinary = [
        NewTopic(name=name)
        for name in dict.fromkeys(missing)
        if name not in (OFFSETS_TOPIC, TRANSACTIONS_TOPIC)
        and mutations.allows(default_partitions(name, services.image, services.config))
    ]
    if ordinary:
        await services.audited_requests.begin(_create_ordinary(ordinary, context, mutations))


async def _create_ordinary(topics: list[NewTopic], context: RequestContext, mutations: MutationQuota) -> None:
    """Goes on when the request is answered: topics that the controller creates later count for the quota, and others do
    not."""
    services = context.services
    creating = services.controller.ask(CreateTopics(topics, timeout_ms=CREATION_TIMEOUT_S * 1000))
    try:
        async with asyncio.timeout(OUTCOME_TIMEOUT_S):
            results = await (creating if context.meter is None else context.meter.measured(creating))
    except (StoreError, TimeoutError):
        if not any(topic.name in services.image.topics for topic in topics):
            mutations.give_back()  # else they are created, but not applied in time
        raise
    if all(result.error is not ErrorCode.NONE for result in results):
        mutations.give_back()


async def _answer_in_turns(request: MetadataRequest, context: RequestContext) -> MetadataResponse:
    """Each element is dropped when it is answered, so that a large request and its response are not in memory twice."""
    wanted = [*_once(request.topics or [])]
    request.topics = []
    wanted.reverse()
    topics = [_one_topic(wanted.pop(), request, context) async for _ in each_in_turn(range(len(wanted)))]
    return _answer(request, context, topics)


def _answer(request: MetadataRequest, context: RequestContext, topics: list[MetadataResponseTopic]) -> MetadataResponse:
    image = context.services.image
    response = MetadataResponse(
        brokers=[
            MetadataResponseBroker(node_id=broker.node_id, host=host, port=port, rack=broker.rack)
            for broker, (host, port) in listed_brokers(context).values()
        ],
        cluster_id=image.cluster_id,
        controller_id=image.controller_id,
        topics=topics,
    )
    if request.include_cluster_authorized_operations and context.api_version <= LAST_VERSION_WITH_CLUSTER_OPERATIONS:
        response.cluster_authorized_operations = context.authorized_cluster_operations()
    return response


def _topics(request: MetadataRequest, context: RequestContext) -> list[MetadataResponseTopic]:
    wanted = request.topics
    if wanted is None or (not wanted and context.api_version < FIRST_VERSION_WITH_EMPTY_LIST):
        return [
            _describe(topic, request, context)
            for topic in context.services.image.topics.values()
            if context.allows_on_topic(Operation.DESCRIBE, topic.name, logs=False)
        ]
    return [_one_topic(topic, request, context) for topic in _once(wanted)]


def _once(wanted: list[MetadataRequestTopic]) -> Iterable[MetadataRequestTopic]:
    """Drops repeated topics, by name, or by id and name: keys with both would take as much memory as the request."""
    return {
        topic.name if topic.topic_id == NO_TOPIC_ID else (topic.topic_id, topic.name): topic for topic in wanted
    }.values()


def _one_topic(
    wanted: MetadataRequestTopic, request: MetadataRequest, context: RequestContext
) -> MetadataResponseTopic:
    image = context.services.image
    if wanted.topic_id != NO_TOPIC_ID:
        if context.api_version < FIRST_VERSION_WITH_TOPIC_IDS:
            return MetadataResponseTopic(
                error_code=ErrorCode.INVALID_REQUEST, name=wanted.name or "", topic_id=wanted.topic_id
            )
        by_id = image.topic_by_id(wanted.topic_id)
        if by_id is None:
            return MetadataResponseTopic(error_code=ErrorCode.UNKNOWN_TOPIC_ID, name=None, topic_id=wanted.topic_id)
        if not context.allows_on_topic(Operation.DESCRIBE, by_id.name):
            refused = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            return MetadataResponseTopic(error_code=refused, name=None, topic_id=wanted.topic_id)
        return _describe(by_id, request, context)
    name = wanted.name or ""
    if not context.allows_on_topic(Operation.DESCRIBE, name):
        return MetadataResponseTopic(error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED, name=name)
    topic = image.topics.get(name)
    is_wanted = topic is None and request.allow_auto_topic_creation and _is_created_on_demand(name, context)
    if is_wanted and not _allows_creation(name, context):
        return MetadataResponseTopic(error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED, name=name)
    if topic is not None:
        return _describe(topic, request, context)
    is_legal = illegal_name_reason(name) is None
    error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if is_legal else ErrorCode.INVALID_TOPIC_EXCEPTION
    missing = MetadataResponseTopic(error_code=error, name=name, is_internal=is_internal(name))
    return _with_operations(missing, name, request, context)


def _describe(topic: TopicImage, request: MetadataRequest, context: RequestContext) -> MetadataResponseTopic:
    knows_listeners = context.api_version >= FIRST_VERSION_WITH_LISTENER_NOT_FOUND
    described = MetadataResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.is_internal,
        partitions=[
            MetadataResponsePartition(
                error_code=state.error,
                partition_index=partition.index,
                leader_id=state.leader,
                leader_epoch=partition.leader_epoch,
                replica_nodes=list(partition.replicas),
                isr_nodes=list(partition.in_sync_replicas),
                offline_replicas=state.offline_replicas,
            )
            for partition in topic.partitions
            for state in (partition_state(topic, partition, context, knows_listener_errors=knows_listeners),)
        ],
    )
    return _with_operations(described, topic.name, request, context)


def _with_operations(
    described: MetadataResponseTopic, name: str, request: MetadataRequest, context: RequestContext
) -> MetadataResponseTopic:
    """Adds the authorized operations, even of a topic that does not exist: the client may have rights on its name."""
    if request.include_topic_authorized_operations:
        described.topic_authorized_operations = context.authorized_operations(ResourceType.TOPIC, name)
    return described
