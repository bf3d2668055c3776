"""CreateAcls, DescribeAcls and DeleteAcls: Kafka's validation, and rules that hold at once and after a restart."""

from collections.abc import Iterator
from typing import Any

import pytest

from odradek.handlers.context import ClientConnection, CloseConnection
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.create_acls import AclCreation, CreateAclsRequest, CreateAclsResponse
from odradek.protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest, DeleteAclsResponse
from odradek.protocol.messages.describe_acls import DescribeAclsRequest, DescribeAclsResponse
from odradek.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from odradek.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from odradek.security.principals import Principal
from tests.handlers.brokers import SimulatedBroker
from tests.handlers.requests import batch, create_topic, produce

SECURED: dict[str, Any] = {
    "authorizer_class_name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super_users": "User:admin",
}
READ, WRITE, ALTER, DESCRIBE = 3, 4, 7, 8
TOPIC, CLUSTER = 2, 4
NO_COLON = (
    "Could not parse principal from `alice` (no colon is present separating the principal type from the principal name)"
)
ANYTHING: dict[str, Any] = {
    "resource_type_filter": 1,
    "resource_name_filter": None,
    "pattern_type_filter": 1,
    "principal_filter": None,
    "host_filter": None,
    "operation": 1,
    "permission_type": 1,
}


@pytest.fixture
def broker() -> Iterator[SimulatedBroker]:
    broker = SimulatedBroker(**SECURED)
    become(broker, "admin")
    yield broker
    broker.close()


def become(broker: SimulatedBroker, name: str, listener: str = "PLAINTEXT") -> None:
    broker.client = ClientConnection(listener, "10.0.0.1")
    broker.client.principal = Principal("User", name)


def creation(**changes: Any) -> AclCreation:
    values: dict[str, Any] = {
        "resource_type": TOPIC,
        "resource_name": "orders",
        "principal": "User:alice",
        "host": "*",
        "operation": WRITE,
        "permission_type": 3,
    }
    return AclCreation(**(values | changes))


def create(broker: SimulatedBroker, *creations: AclCreation) -> list[ErrorCode]:
    response = broker.call(CreateAclsRequest(creations=list(creations)), CreateAclsResponse)
    return [ErrorCode(result.error_code) for result in response.results]


def described(broker: SimulatedBroker) -> list[tuple[str, str]]:
    response = broker.call(DescribeAclsRequest(**ANYTHING), DescribeAclsResponse)
    assert response.error_code == ErrorCode.NONE
    return [(resource.resource_name, acl.principal) for resource in response.resources for acl in resource.acls]


def test_a_rule_holds_at_once_and_after_a_restart(broker: SimulatedBroker) -> None:
    create_topic(broker, "orders")
    become(broker, "alice")
    assert produce(broker, "orders", batch()).error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    become(broker, "admin")
    assert create(broker, creation(), creation()) == [ErrorCode.NONE] * 2
    assert described(broker) == [("orders", "User:alice")]
    become(broker, "alice")
    assert produce(broker, "orders", batch()).error_code == ErrorCode.NONE
    broker.restart()
    assert produce(broker, "orders", batch()).error_code == ErrorCode.NONE
    become(broker, "admin")
    deletion = DeleteAclsRequest(filters=[DeleteAclsFilter(**ANYTHING)])
    (deleted,) = broker.call(deletion, DeleteAclsResponse).filter_results
    assert [acl.principal for acl in deleted.matching_acls] == ["User:alice"]
    assert described(broker) == []
    become(broker, "alice")
    assert produce(broker, "orders", batch()).error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"resource_type": CLUSTER}, "The only valid name for the CLUSTER resource is kafka-cluster"),
        ({"resource_name": ""}, "Invalid empty resource name"),
        ({"resource_type": 1}, "Invalid resourceType ANY"),
        ({"resource_type": 99}, "Invalid resourceType UNKNOWN"),
        ({"resource_pattern_type": 2}, "Invalid patternType MATCH"),
        ({"operation": 1}, "Invalid operation ANY"),
        ({"permission_type": 1}, "Invalid permissionType ANY"),
        (
            {"principal": "alice"},
            NO_COLON,
        ),
    ],
)
def test_a_rule_that_means_nothing_is_refused_and_others_are_added(
    broker: SimulatedBroker, changes: dict[str, Any], message: str
) -> None:
    request = CreateAclsRequest(creations=[creation(**changes), creation()])
    refused, added = broker.call(request, CreateAclsResponse).results
    assert (refused.error_code, refused.error_message) == (ErrorCode.INVALID_REQUEST, message)
    assert added.error_code == ErrorCode.NONE
    assert len(described(broker)) == 1


def test_a_client_that_sends_unknown_is_disconnected(broker: SimulatedBroker) -> None:
    with pytest.raises(CloseConnection):
        create(broker, creation(operation=0))


def test_an_unknown_filter_is_refused(broker: SimulatedBroker) -> None:
    filters = [DeleteAclsFilter(**(ANYTHING | {"operation": 99})), DeleteAclsFilter(**ANYTHING)]
    first, second = broker.call(DeleteAclsRequest(filters=filters), DeleteAclsResponse).filter_results
    assert (first.error_code, first.error_message) == (ErrorCode.INVALID_REQUEST, "Unknown entryFilter.")
    assert second.error_code == ErrorCode.NONE


def test_without_an_authorizer_rules_are_refused(simulated: SimulatedBroker) -> None:
    assert create(simulated, creation()) == [ErrorCode.SECURITY_DISABLED]
    response = simulated.call(DescribeAclsRequest(**ANYTHING), DescribeAclsResponse)
    assert response.error_code == ErrorCode.SECURITY_DISABLED


def test_a_client_may_describe_a_missing_topic_but_not_create_it() -> None:
    broker = SimulatedBroker(auto_create_topics_enable="true", **SECURED)
    try:
        become(broker, "admin")
        create(broker, creation(operation=DESCRIBE))
        become(broker, "alice")
        request = MetadataRequest(topics=[MetadataRequestTopic(name="orders")], allow_auto_topic_creation=True)
        (topic,) = broker.call(request, MetadataResponse).topics
        assert topic.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
        request.allow_auto_topic_creation = False
        (topic,) = broker.call(request, MetadataResponse).topics
        assert topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert "orders" not in broker.services.image.topics
    finally:
        broker.close()


def test_an_administrator_cannot_claim_the_epoch_of_a_coordinator(broker: SimulatedBroker) -> None:
    """Markers of the real coordinator would be refused from then on, because their epoch is lower."""
    create_topic(broker, "orders")
    create(broker, creation(resource_type=CLUSTER, resource_name="kafka-cluster", operation=ALTER))
    become(broker, "alice")

    def write(coordinator_epoch: int) -> ErrorCode:
        marker = WritableTxnMarker(
            producer_id=7,
            producer_epoch=0,
            transaction_result=False,
            topics=[WritableTxnMarkerTopic(name="orders", partition_indexes=[0])],
            coordinator_epoch=coordinator_epoch,
        )
        response = broker.call(WriteTxnMarkersRequest(markers=[marker]), WriteTxnMarkersResponse, 1)
        return ErrorCode(response.markers[0].topics[0].partitions[0].error_code)

    assert write(1_000_000) is ErrorCode.TRANSACTION_COORDINATOR_FENCED
    assert write(0) is ErrorCode.NONE
    become(broker, "admin")  # a broker: it has every right on the listener of brokers
    assert write(5) is ErrorCode.NONE
    become(broker, "alice")
    assert write(5) is ErrorCode.NONE
    assert write(6) is ErrorCode.TRANSACTION_COORDINATOR_FENCED


def test_rules_of_others_may_change_while_a_client_writes(broker: SimulatedBroker) -> None:
    create_topic(broker, "orders")
    create(broker, creation())
    others = [creation(principal=f"User:other-{number}", permission_type=2 + number % 2) for number in range(50)]
    for number, other in enumerate(others):
        become(broker, "admin")
        create(broker, other)
        become(broker, "alice")
        assert produce(broker, "orders", batch()).error_code == ErrorCode.NONE
        become(broker, "admin")
        deletion = DeleteAclsFilter(**(ANYTHING | {"principal_filter": f"User:other-{number}"}))
        broker.call(DeleteAclsRequest(filters=[deletion]), DeleteAclsResponse)
        become(broker, "alice")
        assert produce(broker, "orders", batch()).error_code == ErrorCode.NONE
