"""DescribeBrokerMetrics: the metrics of the broker, for those who may describe the cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from odradek.handlers.context import ClientConnection
from odradek.handlers.describe_broker_metrics import MOST_PREFIXES
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.create_acls import AclCreation, CreateAclsRequest, CreateAclsResponse
from odradek.protocol.messages.describe_broker_metrics import (
    DescribeBrokerMetricsRequest,
    DescribeBrokerMetricsResponse,
)
from odradek.security.principals import Principal
from tests.handlers.brokers import SimulatedBroker
from tests.handlers.requests import batch, create_topic, produce

if TYPE_CHECKING:
    from collections.abc import Iterator

SECURED: dict[str, Any] = {
    "authorizer_class_name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super_users": "User:admin",
}
CLUSTER, DESCRIBE, LITERAL, ALLOW = 4, 8, 3, 3


@pytest.fixture
def broker() -> Iterator[SimulatedBroker]:
    broker = SimulatedBroker(**SECURED)
    become(broker, "admin")
    yield broker
    broker.close()


def become(broker: SimulatedBroker, name: str) -> None:
    broker.client = ClientConnection("PLAINTEXT", "10.0.0.1")
    broker.client.principal = Principal("User", name)


def describe(broker: SimulatedBroker, *prefixes: str) -> DescribeBrokerMetricsResponse:
    return broker.call(DescribeBrokerMetricsRequest(name_prefixes=list(prefixes)), DescribeBrokerMetricsResponse)


def test_the_metrics_are_those_of_the_broker(broker: SimulatedBroker) -> None:
    create_topic(broker, "orders")
    produce(broker, "orders", batch())
    response = describe(broker, "odradek_topic_records_in", "odradek_partitions")
    assert response.error_code == ErrorCode.NONE
    found = {
        (family.name, tuple((label.name, label.value) for label in point.labels)): point.value
        for family in response.families
        for point in family.points
    }
    assert found["odradek_partitions", ()] == 1
    assert found["odradek_topic_records_in_total", (("topic", "orders"),)] == 1
    assert {family.name for family in response.families} == {"odradek_partitions", "odradek_topic_records_in_total"}


def test_it_needs_describe_on_the_cluster(broker: SimulatedBroker) -> None:
    become(broker, "alice")
    response = describe(broker)
    assert (response.error_code, response.families) == (ErrorCode.CLUSTER_AUTHORIZATION_FAILED, [])
    become(broker, "admin")
    creation = AclCreation(
        resource_type=CLUSTER, resource_name="kafka-cluster", resource_pattern_type=LITERAL,
        principal="User:alice", host="*", operation=DESCRIBE, permission_type=ALLOW,
    )  # fmt: skip
    assert broker.call(CreateAclsRequest(creations=[creation]), CreateAclsResponse).results[0].error_code == 0
    become(broker, "alice")
    assert describe(broker).families


def test_the_number_of_prefixes_is_bounded(broker: SimulatedBroker) -> None:
    assert describe(broker, *["x"] * (MOST_PREFIXES + 1)).error_code == ErrorCode.INVALID_REQUEST
    assert describe(broker, *["x"] * MOST_PREFIXES).error_code == ErrorCode.NONE
