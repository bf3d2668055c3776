"""Settings that apply to all brokers of a cluster.

Their resource has an empty name, which librdkafka refuses, so these requests are sent over a socket of their own, to
any broker that answers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.admin.broker_requests import check
from odradek.admin.topics.settings import Setting, source_name
from odradek.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from odradek.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from odradek.admin.broker_requests import BrokerRequests
    from odradek.admin.kafka_admin import ConfigEntry

BROKER_RESOURCE = 4
DESCRIBE_VERSION = 1
ALTER_VERSION = 0


def read_broker_defaults(requests: BrokerRequests) -> list[Setting]:
    """The settings that were changed for all brokers."""
    asked = DescribeConfigsResource(resource_type=BROKER_RESOURCE, resource_name="", configuration_keys=None)
    request = DescribeConfigsRequest(resources=[asked])
    response = requests.ask_any(request, DescribeConfigsResponse, DESCRIBE_VERSION)
    (result,) = response.results
    check(result.error_code, result.error_message, "broker-default", "DescribeConfigs")
    return [
        Setting(each.name, each.value, source_name(each.config_source), False, each.read_only, each.is_sensitive)
        for each in sorted(result.configs, key=lambda each: each.name)
    ]


def alter_broker_defaults(requests: BrokerRequests, changes: Sequence[ConfigEntry]) -> None:
    configs = [
        AlterableConfig(name=each.name, config_operation=each.incremental_operation.value, value=each.value)
        for each in changes
        if each.incremental_operation is not None
    ]
    asked = AlterConfigsResource(resource_type=BROKER_RESOURCE, resource_name="", configs=configs)
    request = IncrementalAlterConfigsRequest(resources=[asked])
    response = requests.ask_any(request, IncrementalAlterConfigsResponse, ALTER_VERSION)
    (result,) = response.responses
    check(result.error_code, result.error_message, "broker-default", "AlterConfigs")
