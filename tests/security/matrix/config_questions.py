"""Requests about configs of topics, brokers and groups."""

from collections.abc import Iterator

from odradek.protocol.messages import (
    alter_configs,
    describe_configs,
    incremental_alter_configs,
    list_config_resources,
)
from tests.security.matrix.question import Question
from tests.security.matrix.rights import Names

TOPIC, BROKER, GROUP, CLIENT_METRICS = 2, 4, 32, 16  # types of config resources


def config_questions(names: Names, node_id: int) -> Iterator[Question]:
    resources = [(TOPIC, names.topic), (TOPIC, names.missing_topic), (BROKER, str(node_id)), (GROUP, names.group)]
    for kind, name in resources:
        label = {TOPIC: "topic", BROKER: "broker", GROUP: "group"}[kind]
        label = "missing topic" if name == names.missing_topic else label
        described = describe_configs.DescribeConfigsResource(
            resource_type=kind, resource_name=name, configuration_keys=["no.such"]
        )
        yield Question(
            f"DescribeConfigs of {label}",
            describe_configs.DescribeConfigsRequest(resources=[described]),
            describe_configs.DescribeConfigsResponse,
        )
        altered = incremental_alter_configs.AlterConfigsResource(resource_type=kind, resource_name=name, configs=[])
        yield Question(
            f"IncrementalAlterConfigs of {label}",
            incremental_alter_configs.IncrementalAlterConfigsRequest(resources=[altered], validate_only=True),
            incremental_alter_configs.IncrementalAlterConfigsResponse,
        )
    replaced = alter_configs.AlterConfigsResource(resource_type=TOPIC, resource_name=names.topic, configs=[])
    yield Question(
        "AlterConfigs",
        alter_configs.AlterConfigsRequest(resources=[replaced], validate_only=True),
        alter_configs.AlterConfigsResponse,
    )
    yield Question(
        "ListConfigResources",
        list_config_resources.ListConfigResourcesRequest(resource_types=[CLIENT_METRICS]),
        list_config_resources.ListConfigResourcesResponse,
    )
