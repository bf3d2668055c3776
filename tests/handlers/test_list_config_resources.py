"""ListConfigResources: which resources have settings."""

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.list_config_resources import ListConfigResourcesRequest, ListConfigResourcesResponse
from tests.handlers.brokers import AnyBroker, SimulatedBroker
from tests.handlers.requests import alter_configs, create_topic

TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32


def listed(broker: AnyBroker, *kinds: int, version: int = 1) -> set[tuple[int, str]]:
    answer = broker.call(ListConfigResourcesRequest(resource_types=list(kinds)), ListConfigResourcesResponse, version)
    assert answer.error_code == ErrorCode.NONE
    return {(each.resource_type, each.resource_name) for each in answer.config_resources}


def test_all_kinds_are_listed_when_none_is_named(simulated: SimulatedBroker, name: str) -> None:
    create_topic(simulated, name)
    alter_configs(simulated, CLIENT_METRICS, "m", interval_ms="1000")
    alter_configs(simulated, GROUP, "g", consumer_session_timeout_ms="46000")
    everything = {(TOPIC, name), (BROKER, "0"), (BROKER_LOGGER, "0"), (CLIENT_METRICS, "m"), (GROUP, "g")}
    assert listed(simulated) == everything
    for kind in (TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP):
        assert listed(simulated, kind) == {each for each in everything if each[0] == kind}
    assert listed(simulated, version=0) == {(CLIENT_METRICS, "m")}


def test_topics_without_settings_of_their_own_are_listed(broker: AnyBroker, name: str) -> None:
    create_topic(broker, name)
    assert (TOPIC, name) in listed(broker, TOPIC)


def test_a_kind_that_is_none_is_refused(broker: AnyBroker) -> None:
    request = ListConfigResourcesRequest(resource_types=[TOPIC, 99])
    answer = broker.call(request, ListConfigResourcesResponse)
    assert (answer.error_code, answer.config_resources) == (ErrorCode.UNSUPPORTED_VERSION, [])
