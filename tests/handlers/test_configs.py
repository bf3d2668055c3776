"""DescribeConfigs, AlterConfigs and IncrementalAlterConfigs: what is set is described, and holds from then on."""

import pytest

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages import alter_configs as replace
from odradek.protocol.messages import incremental_alter_configs as incremental
from odradek.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from tests.handlers.brokers import AnyBroker, SimulatedBroker
from tests.handlers.requests import (
    BROKER_RESOURCE,
    TOPIC_RESOURCE,
    alter_configs,
    batch,
    create_topic,
    produce,
)

GROUP, CLIENT_METRICS, BROKER_LOGGER = 32, 16, 8
SET, DELETE, APPEND, SUBTRACT = range(4)
TOPIC_SOURCE, DEFAULT_SOURCE = 1, 5
BROKER_SOURCE, BROKER_DEFAULT_SOURCE, STATIC_SOURCE = 2, 3, 4


def describe(
    broker: AnyBroker,
    kind: int,
    resource: str,
    *names: str,
    version: int = 4,
    synonyms: bool = False,
    docs: bool = False,
) -> DescribeConfigsResult:
    asked = DescribeConfigsResource(resource_type=kind, resource_name=resource, configuration_keys=list(names) or None)
    request = DescribeConfigsRequest(resources=[asked], include_synonyms=synonyms, include_documentation=docs)
    return broker.call(request, DescribeConfigsResponse, version).results[0]


def setting(broker: AnyBroker, kind: int, resource: str, name: str) -> DescribeConfigsResourceResult:
    found = describe(broker, kind, resource, name, synonyms=True).configs
    assert [each.name for each in found] == [name]
    return found[0]


def value(broker: AnyBroker, kind: int, resource: str, name: str) -> tuple[str | None, int]:
    found = setting(broker, kind, resource, name)
    return found.value, found.config_source


def change(
    broker: AnyBroker, kind: int, resource: str, *operations: tuple[str, int, str | None], validate_only: bool = False
) -> tuple[ErrorCode, str | None]:
    configs = [
        incremental.AlterableConfig(name=name, config_operation=operation, value=text)
        for name, operation, text in operations
    ]
    requested = incremental.AlterConfigsResource(resource_type=kind, resource_name=resource, configs=configs)
    request = incremental.IncrementalAlterConfigsRequest(resources=[requested], validate_only=validate_only)
    reported = broker.call(request, incremental.IncrementalAlterConfigsResponse).responses[0]
    return ErrorCode(reported.error_code), reported.error_message


def replace_all(
    broker: AnyBroker, kind: int, resource: str, validate_only: bool = False, **values: str | None
) -> ErrorCode:
    configs = [replace.AlterableConfig(name=name.replace("_", "."), value=text) for name, text in values.items()]
    requested = replace.AlterConfigsResource(resource_type=kind, resource_name=resource, configs=configs)
    request = replace.AlterConfigsRequest(resources=[requested], validate_only=validate_only)
    return ErrorCode(broker.call(request, replace.AlterConfigsResponse).responses[0].error_code)


# --- topics


@pytest.mark.parametrize("version", range(1, 5))
def test_a_topics_settings_are_reported_with_their_source(broker: AnyBroker, name: str, version: int) -> None:
    create_topic(broker, name, retention_ms="1234")
    reported = {each.name: each for each in describe(broker, TOPIC_RESOURCE, name, version=version).configs}
    assert (reported["retention.ms"].value, reported["retention.ms"].config_source) == ("1234", TOPIC_SOURCE)
    assert (reported["cleanup.policy"].value, reported["cleanup.policy"].config_source) == ("delete", DEFAULT_SOURCE)
    assert not reported["retention.ms"].is_sensitive
    assert not reported["retention.ms"].read_only
    assert reported["retention.ms"].synonyms == []


def test_only_the_settings_asked_for_are_reported(broker: AnyBroker, name: str) -> None:
    create_topic(broker, name)
    reported = describe(broker, TOPIC_RESOURCE, name, "retention.ms", "segment.bytes", "no.such")
    assert {each.name for each in reported.configs} == {"retention.ms", "segment.bytes"}


def test_synonyms_and_documentation_come_when_asked_for(broker: AnyBroker, name: str) -> None:
    create_topic(broker, name, max_message_bytes="999")
    reported = describe(broker, TOPIC_RESOURCE, name, "max.message.bytes", synonyms=True, docs=True).configs[0]
    assert [(each.name, each.value, each.source) for each in reported.synonyms] == [
        ("max.message.bytes", "999", TOPIC_SOURCE),
        ("message.max.bytes", "1048588", DEFAULT_SOURCE),
    ]
    assert reported.documentation
    assert describe(broker, TOPIC_RESOURCE, name, "max.message.bytes").configs[0].documentation is None


@pytest.mark.parametrize(
    ("kind", "resource", "error"),
    [
        (TOPIC_RESOURCE, "there-is-none-of-this-name", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (TOPIC_RESOURCE, "..", ErrorCode.INVALID_TOPIC_EXCEPTION),
        (TOPIC_RESOURCE, "", ErrorCode.INVALID_TOPIC_EXCEPTION),
        (BROKER_RESOURCE, "77", ErrorCode.INVALID_REQUEST),
        (BROKER_RESOURCE, "me", ErrorCode.INVALID_REQUEST),
        (GROUP, "", ErrorCode.INVALID_REQUEST),
        (CLIENT_METRICS, "", ErrorCode.INVALID_REQUEST),
        (99, "x", ErrorCode.INVALID_REQUEST),
        (0, "x", ErrorCode.INVALID_REQUEST),
    ],
)
def test_what_is_not_there_has_no_settings(broker: AnyBroker, kind: int, resource: str, error: ErrorCode) -> None:
    reported = describe(broker, kind, resource)
    assert (ErrorCode(reported.error_code), reported.configs) == (error, [])


def test_single_settings_are_set_and_taken_back(broker: AnyBroker, name: str) -> None:
    create_topic(broker, name)
    assert change(broker, TOPIC_RESOURCE, name, ("retention.ms", SET, "55"), ("segment.ms", SET, "77"))[0] == 0
    broker.settle(lambda: value(broker, TOPIC_RESOURCE, name, "retention.ms") == ("55", TOPIC_SOURCE))
    assert change(broker, TOPIC_RESOURCE, name, ("retention.ms", DELETE, None))[0] == 0
    broker.settle(lambda: value(broker, TOPIC_RESOURCE, name, "retention.ms") == ("604800000", DEFAULT_SOURCE))
    assert value(broker, TOPIC_RESOURCE, name, "segment.ms") == ("77", TOPIC_SOURCE)


def test_lists_grow_and_shrink(broker: AnyBroker, name: str) -> None:
    create_topic(broker, name)
    assert change(broker, TOPIC_RESOURCE, name, ("cleanup.policy", APPEND, "compact"))[0] == 0
    broker.settle(lambda: value(broker, TOPIC_RESOURCE, name, "cleanup.policy")[0] == "delete,compact")
    assert change(broker, TOPIC_RESOURCE, name, ("cleanup.policy", SUBTRACT, "delete"))[0] == 0
    broker.settle(lambda: value(broker, TOPIC_RESOURCE, name, "cleanup.policy")[0] == "compact")
    assert change(broker, TOPIC_RESOURCE, name, ("retention.ms", APPEND, "1"))[0] == ErrorCode.INVALID_CONFIG


@pytest.mark.parametrize(
    ("operations", "error"),
    [
        ([("retention.ms", SET, "soon")], ErrorCode.INVALID_CONFIG),
        ([("no.such", SET, "1")], ErrorCode.INVALID_CONFIG),
        ([("retention.ms", SET, None)], ErrorCode.INVALID_REQUEST),
        ([("retention.ms", 9, "1")], ErrorCode.INVALID_REQUEST),
        ([("retention.ms", SET, "1"), ("retention.ms", SET, "2")], ErrorCode.INVALID_REQUEST),
        ([("retention.ms", SET, "1"), ("cleanup.policy", SET, "burn")], ErrorCode.INVALID_CONFIG),
    ],
)
def test_a_refused_change_changes_nothing(
    broker: AnyBroker, name: str, operations: list[tuple[str, int, str | None]], error: ErrorCode
) -> None:
    create_topic(broker, name)
    reported = change(broker, TOPIC_RESOURCE, name, *operations)
    if broker.is_apache_kafka and operations[0][1] == 9:
        assert reported[0] in (ErrorCode.UNKNOWN_SERVER_ERROR, ErrorCode.INVALID_REQUEST)
    else:
        assert reported[0] == error
        assert reported[1]
    assert value(broker, TOPIC_RESOURCE, name, "retention.ms") == ("604800000", DEFAULT_SOURCE)


def test_a_trial_changes_nothing(broker: AnyBroker, name: str) -> None:
    create_topic(broker, name)
    assert change(broker, TOPIC_RESOURCE, name, ("retention.ms", SET, "55"), validate_only=True)[0] == 0
    assert replace_all(broker, TOPIC_RESOURCE, name, validate_only=True, retention_ms="55") is ErrorCode.NONE
    assert value(broker, TOPIC_RESOURCE, name, "retention.ms") == ("604800000", DEFAULT_SOURCE)
    assert change(broker, TOPIC_RESOURCE, name, ("retention.ms", SET, "soon"), validate_only=True)[0] != 0


def test_a_replacement_takes_back_what_it_does_not_name(broker: AnyBroker, name: str) -> None:
    create_topic(broker, name, retention_ms="55")
    assert replace_all(broker, TOPIC_RESOURCE, name, segment_ms="77") is ErrorCode.NONE
    broker.settle(lambda: value(broker, TOPIC_RESOURCE, name, "segment.ms") == ("77", TOPIC_SOURCE))
    assert value(broker, TOPIC_RESOURCE, name, "retention.ms") == ("604800000", DEFAULT_SOURCE)


def test_settings_of_an_unknown_topic_are_refused(broker: AnyBroker, name: str) -> None:
    assert change(broker, TOPIC_RESOURCE, name, ("retention.ms", SET, "1"))[0] == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert replace_all(broker, TOPIC_RESOURCE, name, retention_ms="1") is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_resource_named_twice_is_an_invalid_request(broker: AnyBroker, name: str) -> None:
    create_topic(broker, name)
    configs = [incremental.AlterableConfig(name="retention.ms", config_operation=SET, value="1")]
    requested = incremental.AlterConfigsResource(resource_type=TOPIC_RESOURCE, resource_name=name, configs=configs)
    request = incremental.IncrementalAlterConfigsRequest(resources=[requested, requested])
    reported = broker.call(request, incremental.IncrementalAlterConfigsResponse).responses
    assert {ErrorCode(each.error_code) for each in reported} == {ErrorCode.INVALID_REQUEST}


@pytest.mark.parametrize("how", ["restart", "kill"])
def test_changed_settings_are_remembered(simulated: SimulatedBroker, name: str, how: str) -> None:
    create_topic(simulated, name)
    change(simulated, TOPIC_RESOURCE, name, ("max.message.bytes", SET, "100"))
    getattr(simulated, how)()
    assert value(simulated, TOPIC_RESOURCE, name, "max.message.bytes") == ("100", TOPIC_SOURCE)
    assert produce(simulated, name, batch(b"x" * 200)).error_code == ErrorCode.MESSAGE_TOO_LARGE


# --- brokers


def test_a_brokers_settings_are_reported_with_their_source() -> None:
    broker = SimulatedBroker(num_partitions="7")
    assert value(broker, BROKER_RESOURCE, "0", "num.partitions") == ("7", STATIC_SOURCE)
    assert value(broker, BROKER_RESOURCE, "0", "message.max.bytes") == ("1048588", DEFAULT_SOURCE)
    assert setting(broker, BROKER_RESOURCE, "0", "num.partitions").read_only
    assert not setting(broker, BROKER_RESOURCE, "0", "message.max.bytes").read_only
    assert [each.name for each in describe(broker, BROKER_RESOURCE, "").configs] == ["min.insync.replicas"]
    broker.close()


def test_the_minimum_of_the_first_start_is_that_of_all_brokers() -> None:
    """The controller and all leaders must count with one minimum (KIP-966): another one in the properties of a broker
    has no effect."""
    broker = SimulatedBroker(min_insync_replicas="2")
    assert value(broker, BROKER_RESOURCE, "0", "min.insync.replicas") == ("2", BROKER_DEFAULT_SOURCE)
    create_topic(broker, "t")
    assert value(broker, TOPIC_RESOURCE, "t", "min.insync.replicas") == ("2", BROKER_DEFAULT_SOURCE)
    assert alter_configs(broker, BROKER_RESOURCE, "0", min_insync_replicas="1") is ErrorCode.INVALID_CONFIG
    broker.close()


@pytest.mark.parametrize(("resource", "source"), [("0", BROKER_SOURCE), ("", BROKER_DEFAULT_SOURCE)])
def test_a_brokers_setting_changes_at_run_time_and_holds_for_new_appends(
    simulated: SimulatedBroker, name: str, resource: str, source: int
) -> None:
    create_topic(simulated, name)
    own = f"{name}-own"
    create_topic(simulated, own, max_message_bytes="5000")
    large = batch(b"x" * 500)
    assert produce(simulated, name, large).error_code == ErrorCode.NONE
    assert alter_configs(simulated, BROKER_RESOURCE, resource, message_max_bytes="300") is ErrorCode.NONE
    assert value(simulated, BROKER_RESOURCE, "0", "message.max.bytes") == ("300", source)
    assert value(simulated, TOPIC_RESOURCE, name, "max.message.bytes") == ("300", source)
    assert produce(simulated, name, large).error_code == ErrorCode.MESSAGE_TOO_LARGE
    assert produce(simulated, own, large).error_code == ErrorCode.NONE, "the topic's own setting wins"
    simulated.kill()
    assert produce(simulated, name, large).error_code == ErrorCode.MESSAGE_TOO_LARGE
    assert alter_configs(simulated, BROKER_RESOURCE, resource, message_max_bytes=None) is ErrorCode.NONE
    assert produce(simulated, name, large).error_code == ErrorCode.NONE


def test_the_brokers_own_setting_wins_over_that_for_all_brokers(simulated: SimulatedBroker) -> None:
    alter_configs(simulated, BROKER_RESOURCE, "", message_max_bytes="300")
    alter_configs(simulated, BROKER_RESOURCE, "0", message_max_bytes="400")
    reported = setting(simulated, BROKER_RESOURCE, "0", "message.max.bytes")
    assert (reported.value, reported.config_source) == ("400", BROKER_SOURCE)
    assert [(each.value, each.source) for each in reported.synonyms] == [
        ("400", BROKER_SOURCE),
        ("300", BROKER_DEFAULT_SOURCE),
        ("1048588", DEFAULT_SOURCE),
    ]
    assert value(simulated, BROKER_RESOURCE, "", "message.max.bytes") == ("300", BROKER_DEFAULT_SOURCE)


@pytest.mark.parametrize(
    ("resource", "name", "text"),
    [
        ("0", "num.partitions", "3"),
        ("0", "listeners", "PLAINTEXT://:1"),
        ("0", "message.max.bytes", "many"),
        ("77", "message.max.bytes", "1"),
    ],
)
def test_a_setting_that_cannot_change_is_refused(
    simulated: SimulatedBroker, resource: str, name: str, text: str
) -> None:
    assert change(simulated, BROKER_RESOURCE, resource, (name, SET, text))[0] in (
        ErrorCode.INVALID_REQUEST,
        ErrorCode.INVALID_CONFIG,
    )


def test_groups_and_metrics_have_settings_too(simulated: SimulatedBroker) -> None:
    assert change(simulated, GROUP, "g", ("consumer.session.timeout.ms", SET, "46000"))[0] == 0
    assert value(simulated, GROUP, "g", "consumer.session.timeout.ms")[0] == "46000"
    assert change(simulated, CLIENT_METRICS, "m", ("interval.ms", SET, "1000"))[0] == 0
    assert value(simulated, CLIENT_METRICS, "m", "interval.ms")[0] == "1000"
    simulated.restart()
    assert value(simulated, GROUP, "g", "consumer.session.timeout.ms")[0] == "46000"
    assert describe(simulated, BROKER_LOGGER, "0").error_code == ErrorCode.INVALID_REQUEST
