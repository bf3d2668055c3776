"""Access to a topic is checked before its existence, so that a refusal does not reveal which topics exist."""

import pytest

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from odradek.security.authorizer import Operation, ResourceType
from tests.handlers.brokers import SimulatedBroker
from tests.handlers.requests import batch, create_topic, fetch, produce
from tests.security.authorizers import AllowsOnly, Forbids

TOPIC = "secret"


@pytest.fixture(params=["existing", "missing"])
def forbidden(request: pytest.FixtureRequest, simulated: SimulatedBroker) -> SimulatedBroker:
    """A broker that denies all access to a topic, which exists or not."""
    if request.param == "existing":
        create_topic(simulated, TOPIC)
    simulated.services.authorizer = Forbids((ResourceType.TOPIC, TOPIC))
    return simulated


@pytest.mark.parametrize("partition", [0, 7])
def test_a_denied_produce_does_not_reveal_whether_the_topic_exists(forbidden: SimulatedBroker, partition: int) -> None:
    answer = produce(forbidden, TOPIC, batch(), partition=partition)
    assert answer.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED


@pytest.mark.parametrize("partition", [0, 7])
def test_a_denied_fetch_does_not_reveal_whether_the_topic_exists(forbidden: SimulatedBroker, partition: int) -> None:
    answer = fetch(forbidden, TOPIC, partition=partition)
    assert answer.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED


def test_metadata_does_not_create_a_topic_that_the_client_may_not_describe() -> None:
    broker = SimulatedBroker(auto_create_topics_enable="true")
    try:
        broker.services.authorizer = AllowsOnly(Operation.CREATE)
        request = MetadataRequest(topics=[MetadataRequestTopic(name=TOPIC)], allow_auto_topic_creation=True)
        (topic,) = broker.call(request, MetadataResponse).topics
        assert topic.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
        assert TOPIC not in broker.services.image.topics
    finally:
        broker.close()


def test_the_authorizer_learns_client_host_and_listener(simulated: SimulatedBroker) -> None:
    create_topic(simulated, TOPIC)
    authorizer = simulated.services.authorizer = Forbids()
    produce(simulated, TOPIC, batch())
    (client,) = set(authorizer.clients)
    assert (str(client.principal), client.host, client.listener_name) == (
        "User:ANONYMOUS",
        simulated.client.host,
        simulated.client.listener_name,
    )
