"""Chapters: the settings of a topic and of the broker, read and changed; changes that are refused."""

from tests.clients.scenario.steps import KEEP_FOREVER, Step
from tests.clients.scenario.topics import create

TOPIC_KEYS = ["cleanup.policy", "compression.type", "max.message.bytes", "retention.ms"]
BROKER_KEYS = ["auto.create.topics.enable", "log.flush.interval.messages", "message.max.bytes", "num.partitions"]


def describe(name: str) -> Step:
    arguments = {"resource": "topic", "topic": "configured", "keys": TOPIC_KEYS}
    return Step(name, "describe_configs", arguments)


def alter(name: str, *operations: tuple[str, str, str | None], topic: str = "configured") -> Step:
    arguments = {"resource": "topic", "topic": topic, "operations": [list(each) for each in operations]}
    return Step(name, "alter_configs", arguments)


TOPIC_STEPS = [
    Step("create with settings", "create_topic", create("configured", 1, {**KEEP_FOREVER})),
    describe("describe what was set at creation"),
    alter("set two", ("set", "retention.ms", "100000000"), ("set", "cleanup.policy", "compact")),
    describe("describe two"),
    alter("append to a list", ("append", "cleanup.policy", "delete")),
    describe("describe the list"),
    alter("subtract from a list", ("subtract", "cleanup.policy", "compact")),
    describe("describe the shorter list"),
    alter("delete one", ("delete", "retention.ms", None)),
    describe("describe after the deletion"),
    alter("set what does not exist", ("set", "no.such.setting", "1")),
    alter("set a malformed value", ("set", "retention.ms", "soon")),
    alter("set a value out of range", ("set", "max.message.bytes", "-5")),
    alter("append to what is no list", ("append", "retention.ms", "1")),
    alter(
        "one bad among good changes nothing",
        ("set", "compression.type", "zstd"),
        ("set", "retention.ms", "soon"),
    ),
    describe("describe after the refusals"),
    alter("set on no topic", ("set", "retention.ms", "1"), topic="no-topic"),
    Step(
        "describe no topic",
        "describe_configs",
        {"resource": "topic", "topic": "no-topic", "keys": TOPIC_KEYS},
    ),
    Step(
        "replace all",
        "replace_configs",
        {"resource": "topic", "topic": "configured", "configs": {"compression.type": "lz4"}},
    ),
    describe("describe after the replacement"),
    Step(
        "replace with a malformed value",
        "replace_configs",
        {"resource": "topic", "topic": "configured", "configs": {"compression.type": "brotli"}},
    ),
]


def describe_broker(name: str) -> Step:
    arguments = {"resource": "broker", "keys": BROKER_KEYS}
    return Step(name, "describe_configs", arguments)


def alter_broker(name: str, resource: str, *operations: tuple[str, str, str | None]) -> Step:
    arguments = {"resource": resource, "operations": [list(each) for each in operations]}
    return Step(name, "alter_configs", arguments)


def describe_flush(name: str) -> Step:
    arguments = {"resource": "topic", "topic": "configured", "keys": ["flush.messages"]}
    return Step(name, "describe_configs", arguments)


# These change the broker for everyone, so two drivers never run them at once; each leaves the broker as it was.
BROKER_STEPS = [
    describe_broker("the broker's settings"),
    alter_broker("set on the broker", "broker", ("set", "message.max.bytes", "1048589")),
    describe_broker("describe it"),
    alter_broker("set for all brokers", "broker-default", ("set", "log.flush.interval.messages", "100000")),
    describe_broker("describe both"),
    describe_flush("a topic takes it from there"),
    alter_broker("delete on the broker", "broker", ("delete", "message.max.bytes", None)),
    alter_broker("delete for all brokers", "broker-default", ("delete", "log.flush.interval.messages", None)),
    describe_broker("describe after the deletions"),
    describe_flush("a topic no longer takes it"),
    alter_broker("a malformed value", "broker", ("set", "message.max.bytes", "much")),
    alter_broker("what cannot change", "broker", ("set", "num.partitions", "2")),
    describe_broker("describe after the refusals"),
]
