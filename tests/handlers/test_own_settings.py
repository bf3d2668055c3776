"""Settings of a broker in a cluster: the broker itself validates them, with its own properties file and key stores."""

from collections.abc import Iterator

import pytest

from odradek.configuration.broker_configs import BrokerConfig
from odradek.configuration.config_types import ConfigResourceType
from odradek.controller.decisions.configs import AlterOperation
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.alter_configs import AlterableConfig as ReplacedConfig
from odradek.protocol.messages.alter_configs import AlterConfigsRequest, AlterConfigsResponse
from odradek.protocol.messages.alter_configs import AlterConfigsResource as ReplacedResource
from odradek.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from tests.handlers.forwarding_cluster import TwoBrokers

CONTROLLER, OTHER = 0, 1
BROKER = ConfigResourceType.BROKER
MIN_LAG, MAX_LAG = "log.cleaner.min.compaction.lag.ms", "log.cleaner.max.compaction.lag.ms"


@pytest.fixture
def cluster() -> Iterator[TwoBrokers]:
    """Broker 1 has a setting in its file with which a dynamic one can be at odds."""
    brokers = TwoBrokers({OTHER: {MAX_LAG: "1000"}})
    yield brokers
    brokers.close()


def alter(cluster: TwoBrokers, receiver: int, *resources: tuple[str, dict[str, str]]) -> list[tuple[str, int, str]]:
    request = IncrementalAlterConfigsRequest(
        resources=[
            AlterConfigsResource(
                resource_type=BROKER,
                resource_name=name,
                configs=[
                    AlterableConfig(name=key, config_operation=AlterOperation.SET, value=value)
                    for key, value in values.items()
                ],
            )
            for name, values in resources
        ]
    )
    answer = cluster.call(receiver, request, IncrementalAlterConfigsResponse)
    return [(each.resource_name, each.error_code, each.error_message or "") for each in answer.responses]


def test_a_broker_refuses_what_its_own_file_does_not_allow(cluster: TwoBrokers) -> None:
    ((name, error, message),) = alter(cluster, OTHER, ("1", {MIN_LAG: "2000"}))
    assert (name, error) == ("1", ErrorCode.INVALID_REQUEST)
    assert "must not be more than" in message
    assert cluster.members[OTHER].cache.image.configs.keys() == {(BROKER, "")}
    ((_, error, _),) = alter(cluster, CONTROLLER, ("0", {MIN_LAG: "2000"}))
    assert error == ErrorCode.NONE


def test_a_broker_accepts_what_the_file_of_the_controller_would_not_allow() -> None:
    cluster = TwoBrokers({CONTROLLER: {MAX_LAG: "1000"}})
    ((_, error, message),) = alter(cluster, OTHER, ("1", {MIN_LAG: "2000"}))
    assert (error, message) == (ErrorCode.NONE, "")
    assert cluster.members[OTHER].cache.broker_config.topic_defaults["min.compaction.lag.ms"] == 2000
    cluster.close()


def test_refusals_of_the_broker_are_counted_by_it(cluster: TwoBrokers) -> None:
    alter(cluster, OTHER, ("1", {MIN_LAG: "2000"}))
    alter(cluster, OTHER, ("1", {MIN_LAG: "2000"}), ("", {"message.max.bytes": "300"}))
    errors = [member.services.metrics.requests.of("IncrementalAlterConfigs").errors for member in cluster.members]
    assert errors == [{}, {"INVALID_REQUEST": 2}]


@pytest.mark.parametrize(("receiver", "named"), [(CONTROLLER, OTHER), (OTHER, CONTROLLER)])
def test_settings_of_a_broker_must_be_sent_to_it(cluster: TwoBrokers, receiver: int, named: int) -> None:
    answer = alter(cluster, receiver, (str(named), {"message.max.bytes": "300"}))
    assert answer == [
        (
            str(named),
            ErrorCode.INVALID_REQUEST,
            f"Unexpected broker id, expected {receiver}, but received {named}",
        )
    ]


def test_the_other_resources_of_the_request_go_to_the_controller(cluster: TwoBrokers) -> None:
    answer = alter(cluster, OTHER, ("1", {MIN_LAG: "2000"}), ("", {"message.max.bytes": "300"}))
    assert [(name, error) for name, error, _ in answer] == [("1", ErrorCode.INVALID_REQUEST), ("", ErrorCode.NONE)]
    assert cluster.members[OTHER].cache.broker_config.values["message.max.bytes"] == 300


def test_a_resource_that_appears_twice_is_refused_twice(cluster: TwoBrokers) -> None:
    answer = alter(cluster, OTHER, ("1", {MIN_LAG: "2000"}), ("1", {"message.max.bytes": "300"}))
    assert [error for _, error, _ in answer] == [ErrorCode.INVALID_REQUEST] * 2
    assert cluster.members[OTHER].cache.image.configs.keys() == {(BROKER, "")}


def test_a_key_store_that_the_broker_cannot_use_is_refused_with_the_reason(cluster: TwoBrokers) -> None:
    async def check(config: BrokerConfig) -> str | None:
        return "keystore: No such file" if config.values["message.max.bytes"] == 300 else None

    cluster.members[OTHER].services.check_settings = check
    answer = alter(cluster, OTHER, ("1", {"message.max.bytes": "300"}))
    assert answer == [("1", ErrorCode.INVALID_REQUEST, "keystore: No such file")]
    replaced = cluster.call(
        OTHER,
        AlterConfigsRequest(
            resources=[
                ReplacedResource(
                    resource_type=BROKER,
                    resource_name="1",
                    configs=[ReplacedConfig(name="message.max.bytes", value="300")],
                )
            ]
        ),
        AlterConfigsResponse,
    )
    assert [each.error_code for each in replaced.responses] == [ErrorCode.INVALID_REQUEST]
    assert cluster.members[OTHER].cache.image.configs.keys() == {(BROKER, "")}
