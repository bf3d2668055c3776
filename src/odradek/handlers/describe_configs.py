"""DescribeConfigs, versions 1 to 4: the settings of topics, brokers, groups and metrics subscriptions.

Departures from Kafka: broker loggers (log4j) do not exist here, so describing them is refused. Groups and metrics
subscriptions are described whether they exist or not, so that a client may ask for any number of them: a response has
`MOST_DESCRIBED_BYTES` of settings, which suffice for 15,000 topics (9,000 with documentation), and resources beyond it
get INVALID_REQUEST.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, NamedTuple

from odradek.configuration.config_descriptions import (
    describe_broker_configs,
    describe_client_metrics_configs,
    describe_default_broker_configs,
    describe_group_configs,
    describe_topic_configs,
)
from odradek.configuration.config_types import ConfigEntry, ConfigResourceType
from odradek.handlers.config_access import config_refusal
from odradek.handlers.repeated_names import TOO_OFTEN, answer_each, approximate_size_bytes, distinct
from odradek.metadata.topic_names import illegal_name_reason
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)
from odradek.protocol.refusal import Refusal
from odradek.security.authorizer import Operation

if TYPE_CHECKING:
    from odradek.handlers.context import RequestContext


MOST_DESCRIBED_BYTES = 64 << 20
TOO_MANY = "The request names more resources than one response can describe."
RESOURCES_AT_ONCE = 20  # others get their turn after 5 ms or so


class _Resource(NamedTuple):
    """A resource as a request names it, and the settings that are wanted of it: none stands for all."""

    resource_type: int
    name: str
    settings: frozenset[str]


async def handle(request: DescribeConfigsRequest, context: RequestContext) -> DescribeConfigsResponse:
    names = [
        _Resource(each.resource_type, each.resource_name, frozenset(each.configuration_keys or ()))
        for each in request.resources
    ]
    results = []
    left_bytes = MOST_DESCRIBED_BYTES
    for count, resource in enumerate(distinct(names), 1):
        if left_bytes > 0:
            result = _describe(resource, request, context)
            left_bytes -= approximate_size_bytes(result)
        else:
            result = _refuse(resource, Refusal(ErrorCode.INVALID_REQUEST, TOO_MANY))
        results.append(result)
        if not count % RESOURCES_AT_ONCE:
            await asyncio.sleep(0)
    return DescribeConfigsResponse(results=answer_each(names, results, _refuse_repetition))


def _describe(resource: _Resource, request: DescribeConfigsRequest, context: RequestContext) -> DescribeConfigsResult:
    refused = config_refusal(context, Operation.DESCRIBE_CONFIGS, resource.resource_type, resource.name)
    entries = Refusal(refused) if refused is not None else _entries(resource, context)
    if isinstance(entries, Refusal):
        return _refuse(resource, entries)
    return DescribeConfigsResult(
        error_message=None,
        resource_type=resource.resource_type,
        resource_name=resource.name,
        configs=[_entry(entry, request) for entry in entries],
    )


def _refuse(resource: _Resource, refusal: Refusal) -> DescribeConfigsResult:
    return DescribeConfigsResult(
        error_code=refusal.error,
        error_message=refusal.message,
        resource_type=resource.resource_type,
        resource_name=resource.name,
        configs=[],
    )


def _refuse_repetition(resource: _Resource) -> DescribeConfigsResult:
    return _refuse(resource, Refusal(ErrorCode.INVALID_REQUEST, TOO_OFTEN))


def _entries(resource: _Resource, context: RequestContext) -> list[ConfigEntry] | Refusal:
    services, name, names = context.services, resource.name, resource.settings
    config = services.config
    match resource.resource_type:
        case ConfigResourceType.TOPIC:
            reason = illegal_name_reason(name)
            if reason is not None:
                return Refusal(ErrorCode.INVALID_TOPIC_EXCEPTION, reason)
            if name not in services.image.topics:
                return Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            own = services.image.configs_of(ConfigResourceType.TOPIC, name)
            return describe_topic_configs(own, config, names, services.image.inherited_settings(name))
        case ConfigResourceType.BROKER:
            if not name:
                return describe_default_broker_configs(config, names)
            if name != str(config.node_id):
                return Refusal(
                    ErrorCode.INVALID_REQUEST,
                    f"Unexpected broker id, expected {config.node_id} or empty string, but received {name}",
                )
            return describe_broker_configs(config, names)
        case ConfigResourceType.GROUP:
            if not name:
                return Refusal(ErrorCode.INVALID_REQUEST, "Group name must not be empty")
            return describe_group_configs(services.image.configs_of(ConfigResourceType.GROUP, name), config, names)
        case ConfigResourceType.CLIENT_METRICS:
            if not name:
                return Refusal(ErrorCode.INVALID_REQUEST, "Client metrics subscription name must not be empty")
            overrides = services.image.configs_of(ConfigResourceType.CLIENT_METRICS, name)
            return describe_client_metrics_configs(overrides, names)
        case unknown:
            return Refusal(ErrorCode.INVALID_REQUEST, f"Unsupported resource type: {unknown}")


def _entry(entry: ConfigEntry, request: DescribeConfigsRequest) -> DescribeConfigsResourceResult:
    return DescribeConfigsResourceResult(
        name=entry.name,
        value=entry.value,
        read_only=entry.is_read_only,
        config_source=entry.source,
        is_sensitive=entry.is_sensitive,
        synonyms=[
            DescribeConfigsSynonym(name=synonym.name, value=synonym.value, source=synonym.source)
            for synonym in (entry.synonyms if request.include_synonyms else ())
        ],
        config_type=entry.type,
        documentation=entry.documentation if request.include_documentation else None,
    )
