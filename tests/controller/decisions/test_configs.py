"""What the controller decides about settings."""

import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.configuration.broker_configs import BrokerConfig
from odradek.configuration.config_types import ConfigResourceType
from odradek.controller.decisions.configs import (
    AlterOperation,
    ConfigAlteration,
    ConfigOperation,
    ConfigReplacement,
    decide_alteration,
    decide_replacement,
    repeated_resources,
)
from odradek.metadata.changes import ConfigsChanged, TopicCreated
from odradek.metadata.entities import PartitionImage, TopicImage
from odradek.metadata.image import MetadataImage
from odradek.protocol.errors import ErrorCode
from odradek.protocol.refusal import Refusal
from tests.controller.counted_text import CountedText

CONFIG = BrokerConfig.from_properties({})
TOPIC, BROKER, GROUP = ConfigResourceType.TOPIC, ConfigResourceType.BROKER, ConfigResourceType.GROUP
SET, DELETE, APPEND, SUBTRACT = AlterOperation
IMAGE = MetadataImage(version=0, cluster_id="c", controller_id=0).apply_all(
    [
        TopicCreated(TopicImage("t", uuid.UUID(int=1), (PartitionImage(0, (0,), (0,), 0, 0, 0),), is_internal=False)),
        ConfigsChanged(TOPIC, "t", {"retention.ms": "5", "segment.ms": "6"}),
    ]
)


def alter(kind: int, name: str, *operations: tuple[str, int, str | None]) -> ConfigsChanged | Refusal:
    request = ConfigAlteration(kind, name, [ConfigOperation(*operation) for operation in operations])
    return decide_alteration(request, IMAGE, CONFIG)


def test_single_settings_are_set_and_deleted() -> None:
    assert alter(TOPIC, "t", ("retention.ms", SET, "7"), ("segment.ms", DELETE, None)) == ConfigsChanged(
        TOPIC, "t", {"retention.ms": "7", "segment.ms": None}
    )


def test_what_stays_the_same_is_no_change() -> None:
    assert alter(TOPIC, "t", ("retention.ms", SET, "5"), ("flush.ms", DELETE, None)) == ConfigsChanged(TOPIC, "t", {})


def test_deleting_a_setting_that_does_not_exist_is_fine() -> None:
    for kind, name in ((TOPIC, "t"), (BROKER, "0"), (BROKER, "")):
        assert alter(kind, name, ("non.existent.config", DELETE, None)) == ConfigsChanged(
            ConfigResourceType(kind), name, {}
        )


def test_lists_grow_and_shrink_from_their_default() -> None:
    assert alter(TOPIC, "t", ("cleanup.policy", APPEND, "compact,delete,compact")) == ConfigsChanged(
        TOPIC, "t", {"cleanup.policy": "delete,compact"}
    )
    assert alter(TOPIC, "t", ("cleanup.policy", SUBTRACT, "delete,other")) == ConfigsChanged(
        TOPIC, "t", {"cleanup.policy": ""}
    )


def test_replacing_removes_what_is_not_named() -> None:
    request = ConfigReplacement(TOPIC, "t", [("retention.ms", "5"), ("flush.ms", "9")])
    assert decide_replacement(request, IMAGE, CONFIG) == ConfigsChanged(
        TOPIC, "t", {"segment.ms": None, "flush.ms": "9"}
    )


def test_unknown_broker_settings_are_kept_as_kafka_keeps_them() -> None:
    assert alter(BROKER, "", ("invalid", SET, "2")) == ConfigsChanged(BROKER, "", {"invalid": "2"})
    assert alter(BROKER, "0", ("invalid", SET, "2")) == ConfigsChanged(BROKER, "0", {"invalid": "2"})


@pytest.mark.parametrize(
    ("kind", "name", "operation", "error", "message"),
    [
        (TOPIC, "t", ("invalid", SET, "2"), ErrorCode.INVALID_CONFIG, "Unknown topic config name: invalid"),
        (
            TOPIC,
            "x",
            ("retention.ms", SET, "2"),
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            "The topic 'x' does not exist.",
        ),
        (TOPIC, "", ("retention.ms", SET, "2"), ErrorCode.INVALID_REQUEST, "Default topic resources are not allowed."),
        (
            TOPIC,
            "a/b",
            ("retention.ms", SET, "2"),
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            (
                "Topic name is invalid: 'a/b' contains one or more characters other than "
                "ASCII alphanumerics, '.', '_' and '-'"
            ),
        ),
        (
            TOPIC,
            "t",
            ("retention.ms", SET, None),
            ErrorCode.INVALID_REQUEST,
            "Null value not supported for : retention.ms",
        ),
        (TOPIC, "t", ("retention.ms", 9, "1"), ErrorCode.INVALID_REQUEST, "Unknown operations type 9"),
        (
            TOPIC,
            "t",
            ("retention.ms", APPEND, "1"),
            ErrorCode.INVALID_CONFIG,
            "Can't APPEND to key retention.ms because its type is not LIST.",
        ),
        (
            TOPIC,
            "t",
            ("retention.ms", SET, "9" * 40000),
            ErrorCode.INVALID_CONFIG,
            "The configuration value cannot be added because it exceeds the maximum value size of 32767 bytes.",
        ),
        (
            BROKER,
            "3",
            ("message.max.bytes", SET, "2"),
            ErrorCode.INVALID_REQUEST,
            "Unexpected broker id, expected 0, but received 3",
        ),
        (
            BROKER,
            "me",
            ("message.max.bytes", SET, "2"),
            ErrorCode.INVALID_REQUEST,
            "Node id must be an integer, but it is: me",
        ),
        (
            BROKER,
            "0",
            ("broker.id", SET, "1"),
            ErrorCode.INVALID_REQUEST,
            "Cannot update these configs dynamically: [broker.id]",
        ),
        (
            GROUP,
            "",
            ("consumer.session.timeout.ms", SET, "1"),
            ErrorCode.INVALID_REQUEST,
            "Default group resources are not allowed.",
        ),
        (
            GROUP,
            "g",
            ("unknown.config", SET, "1"),
            ErrorCode.INVALID_CONFIG,
            "Unknown group config name: unknown.config",
        ),
        (
            ConfigResourceType.CLIENT_METRICS,
            "cm",
            ("unknown.config", SET, "1"),
            ErrorCode.INVALID_REQUEST,
            "Unknown client metrics configuration: unknown.config",
        ),
        (
            BROKER,
            "0",
            ("message.max.bytes", APPEND, "1"),
            ErrorCode.INVALID_CONFIG,
            "Config value append is not allowed for config key: message.max.bytes",
        ),
        (BROKER, "0", ("nope", SUBTRACT, "1"), ErrorCode.INVALID_CONFIG, "Unknown config name: nope"),
        (
            ConfigResourceType.CLIENT_METRICS,
            "cm",
            ("metrics", APPEND, "org.foo"),
            ErrorCode.INVALID_CONFIG,
            "Can't APPEND to key metrics because its type is not LIST.",
        ),
        (8, "0", ("logger", SET, "DEBUG"), ErrorCode.INVALID_REQUEST, "Unknown resource type 8"),
        (99, "0", ("x", SET, "y"), ErrorCode.INVALID_REQUEST, "Unknown resource type 99"),
    ],
)
def test_refusals(kind: int, name: str, operation: tuple[str, int, str | None], error: ErrorCode, message: str) -> None:
    assert alter(kind, name, operation) == Refusal(error, message)


def test_one_setting_twice_is_refused() -> None:
    assert alter(TOPIC, "t", ("retention.ms", SET, "1"), ("retention.ms", DELETE, None)) == Refusal(
        ErrorCode.INVALID_REQUEST, "Error due to duplicate config keys"
    )


@pytest.mark.parametrize("operation", [APPEND, SUBTRACT])
def test_entries_of_a_list_are_compared_about_once_each(operation: AlterOperation) -> None:
    present = ",".join(str(number) for number in range(0, 1000, 2))
    image = IMAGE.apply_all([ConfigsChanged(BROKER, "", {"metric.reporters": present})])
    (value,), comparisons = CountedText.of([",".join(str(number) for number in range(1000))])
    request = ConfigAlteration(BROKER, "", [ConfigOperation("metric.reporters", operation, value)])
    changed = decide_alteration(request, image, CONFIG)
    assert isinstance(changed, ConfigsChanged)
    after = changed.values["metric.reporters"] or ""
    assert len(after.split(",")) == (1000 if operation is APPEND else 1)
    assert comparisons[0] < 4000


@given(st.lists(st.sampled_from("abc"), max_size=6), st.lists(st.sampled_from("abc"), max_size=6))
def test_entries_are_appended_and_removed_one_by_one_as_in_kafka(present: list[str], named: list[str]) -> None:
    image = IMAGE.apply_all([ConfigsChanged(BROKER, "", {"metric.reporters": ",".join(present)})])
    appended, left = list(present), list(present)
    for entry in named or [""]:  # an empty value is one empty entry
        if entry not in appended:
            appended.append(entry)
        if entry in left:
            left.remove(entry)
    for operation, expected in ((APPEND, appended), (SUBTRACT, left)):
        change = ConfigOperation("metric.reporters", operation, ",".join(named))
        changed = decide_alteration(ConfigAlteration(BROKER, "", [change]), image, CONFIG)
        assert isinstance(changed, ConfigsChanged)
        assert changed.values.get("metric.reporters", ",".join(present)) == ",".join(expected)


def test_resources_that_are_named_twice_are_found() -> None:
    requests = [ConfigAlteration(TOPIC, name, []) for name in ("a", "b", "a")]
    assert repeated_resources(requests) == {(TOPIC, "a")}


def test_broker_lists_that_mean_nothing_here_are_lists_still() -> None:
    assert alter(BROKER, "", ("metric.reporters", APPEND, "x")) == ConfigsChanged(BROKER, "", {"metric.reporters": "x"})
