"""DescribeConfigs, versions 1 to 4: the settings of topics, brokers, groups and metrics subscriptions.

Departures from Kafka: broker loggers (log4j) do not exist here, so describing them is refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.configuration.config_descriptions import (
    describe_broker_configs,
    describe_client_metrics_configs,
    describe_default_broker_configs,
    describe_group_configs,
    describe_topic_configs,
)
from odradek.configuration.config_types import ConfigEntry, ConfigResourceType
from odradek.handlers.config_access import config_refusal
from odradek.metadata.topic_names import illegal_name_reason
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)
from odradek.protocol.refusal import Refusal
from odradek.security.authorizer import Operation

if TYPE_CHECKING:
    from odradek.handlers.context import RequestContext


def handle(request: DescribeConfigsRequest, context: RequestContext) -> DescribeConfigsResponse:
    return DescribeConfigsResponse(results=[_describe(resource, request, context) for resource in request.resources])


def _describe(
    resource: DescribeConfigsResource, request: DescribeConfigsRequest, context: RequestContext
) -> DescribeConfigsResult:
    refused = config_refusal(context, Operation.DESCRIBE_CONFIGS, resource.resource_type, resource.resource_name)
    entries = Refusal(refused) if refused is not None else _entries(resource, context)
    result = DescribeConfigsResult(
        error_message=None, resource_type=resource.resource_type, resource_name=resource.resource_name, configs=[]
    )
    if isinstance(entries, Refusal):
        result.error_code, result.error_message = entries.error, entries.message
    else:
        result.configs = [_entry(entry, request) for entry in entries]
    return result


def _entries(resource: DescribeConfigsResource, context: RequestContext) -> list[ConfigEntry] | Refusal:
    services, name, names = context.services, resource.resource_name, resource.configuration_keys
    config = services.config
    match resource.resource_type:
        case ConfigResourceType.TOPIC:
            reason = illegal_name_reason(name)
            if reason is not None:
                return Refusal(ErrorCode.INVALID_TOPIC_EXCEPTION, reason)
            if name not in services.image.topics:
                return Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            return describe_topic_configs(services.image.configs_of(ConfigResourceType.TOPIC, name), config, names)
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
