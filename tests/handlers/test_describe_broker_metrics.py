"""DescribeBrokerMetrics: the metrics of the broker, for those who may describe the cluster."""

from collections.abc import Iterator
from typing import Any

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

SECURED: dict[str, Any] = {
    "authorizer_class_name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super_users": "User:admin",
}
TOPIC, CLUSTER, DESCRIBE, LITERAL, ALLOW = 2, 4, 8, 3, 3


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


def allow_alice_to_describe(broker: SimulatedBroker, resource_type: int, name: str) -> None:
    become(broker, "admin")
    creation = AclCreation(
        resource_type=resource_type, resource_name=name, resource_pattern_type=LITERAL,
        principal="User:alice", host="*", operation=DESCRIBE, permission_type=ALLOW,
    )  # fmt: skip
    assert broker.call(CreateAclsRequest(creations=[creation]), CreateAclsResponse).results[0].error_code == 0
    become(broker, "alice")


def test_it_needs_describe_on_the_cluster(broker: SimulatedBroker) -> None:
    become(broker, "alice")
    response = describe(broker)
    assert (response.error_code, response.families) == (ErrorCode.CLUSTER_AUTHORIZATION_FAILED, [])
    allow_alice_to_describe(broker, CLUSTER, "kafka-cluster")
    assert describe(broker).families


def test_topics_that_the_client_may_not_describe_are_counted_as_other(broker: SimulatedBroker) -> None:
    for topic, count in (("orders", 1), ("salaries", 2), ("payments", 3)):
        create_topic(broker, topic)
        for _ in range(count):
            produce(broker, topic, batch())
    allow_alice_to_describe(broker, CLUSTER, "kafka-cluster")
    allow_alice_to_describe(broker, TOPIC, "orders")
    families = {each.name: each.points for each in describe(broker).families}
    records = families["odradek_topic_records_in_total"]
    assert {each.labels[0].value: each.value for each in records} == {"orders": 1, "other": 5}
    values = {label.value for points in families.values() for point in points for label in point.labels}
    assert not values & {"salaries", "payments"}


def test_the_size_of_a_topic_without_traffic_has_its_label(broker: SimulatedBroker) -> None:
    """A topic that no client uses, and any topic after a start."""
    create_topic(broker, "idle")
    create_topic(broker, "orders")
    produce(broker, "orders", batch())
    broker.kill()
    become(broker, "admin")
    (family,) = describe(broker, "odradek_topic_size_bytes").families
    sizes = {point.labels[0].value: point.value for point in family.points}
    assert (sizes["idle"], sizes["orders"] > 0) == (0, True)


def test_the_number_of_prefixes_is_bounded(broker: SimulatedBroker) -> None:
    assert describe(broker, *["x"] * (MOST_PREFIXES + 1)).error_code == ErrorCode.INVALID_REQUEST
    assert describe(broker, *["x"] * MOST_PREFIXES).error_code == ErrorCode.NONE
