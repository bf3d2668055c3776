"""Chapters: the settings of a topic and of the broker, read and changed; values, sources, and what is refused."""

from tests.clients.scenario.steps import DONE, KEEP_FOREVER, Json, Step, refused
from tests.clients.scenario.topics import create

TOPIC_KEYS = ["cleanup.policy", "compression.type", "max.message.bytes", "retention.ms"]
BROKER_KEYS = ["auto.create.topics.enable", "log.flush.interval.messages", "message.max.bytes", "num.partitions"]
WEEK_MS = "604800000"
NEVER = "9223372036854775807"


def setting(value: str, source: str = "DEFAULT_CONFIG", *, read_only: bool = False) -> Json:
    return {"value": value, "source": source, "read_only": read_only, "sensitive": False}


def on_topic(value: str) -> Json:
    return setting(value, "DYNAMIC_TOPIC_CONFIG")


def describe(name: str, changed: dict[str, Json], topic: str = "configured") -> Step:
    defaults = {
        "cleanup.policy": setting("delete"),
        "compression.type": setting("producer"),
        "max.message.bytes": setting("1048588"),
        "retention.ms": setting(WEEK_MS),
    }
    arguments = {"resource": "topic", "topic": topic, "keys": TOPIC_KEYS}
    return Step(name, "describe_configs", arguments, {"error": "NONE", "configs": {**defaults, **changed}})


def alter(name: str, *operations: tuple[str, str, str | None], error: str = "NONE", topic: str = "configured") -> Step:
    arguments = {"resource": "topic", "topic": topic, "operations": [list(each) for each in operations]}
    return Step(name, "alter_configs", arguments, refused(error))


TOPIC_STEPS = [
    Step("create with settings", "create_topic", create("configured", 1, {**KEEP_FOREVER}), DONE),
    describe("describe what was set at creation", {"retention.ms": on_topic("-1")}),
    alter("set two", ("set", "retention.ms", "100000000"), ("set", "cleanup.policy", "compact")),
    describe("describe two", {"retention.ms": on_topic("100000000"), "cleanup.policy": on_topic("compact")}),
    alter("append to a list", ("append", "cleanup.policy", "delete")),
    describe(
        "describe the list", {"retention.ms": on_topic("100000000"), "cleanup.policy": on_topic("compact,delete")}
    ),
    alter("subtract from a list", ("subtract", "cleanup.policy", "compact")),
    describe(
        "describe the shorter list",
        {"retention.ms": on_topic("100000000"), "cleanup.policy": on_topic("delete")},
    ),
    alter("delete one", ("delete", "retention.ms", None)),
    describe("describe after the deletion", {"cleanup.policy": on_topic("delete")}),
    alter("set what does not exist", ("set", "no.such.setting", "1"), error="INVALID_CONFIG"),
    alter("set a malformed value", ("set", "retention.ms", "soon"), error="INVALID_CONFIG"),
    alter("set a value out of range", ("set", "max.message.bytes", "-5"), error="INVALID_CONFIG"),
    alter("append to what is no list", ("append", "retention.ms", "1"), error="INVALID_CONFIG"),
    alter(
        "one bad among good changes nothing",
        ("set", "compression.type", "zstd"),
        ("set", "retention.ms", "soon"),
        error="INVALID_CONFIG",
    ),
    describe("describe after the refusals", {"cleanup.policy": on_topic("delete")}),
    alter("set on no topic", ("set", "retention.ms", "1"), error="UNKNOWN_TOPIC_OR_PARTITION", topic="no-topic"),
    Step(
        "describe no topic",
        "describe_configs",
        {"resource": "topic", "topic": "no-topic", "keys": TOPIC_KEYS},
        refused("UNKNOWN_TOPIC_OR_PARTITION"),
    ),
    Step(
        "replace all",
        "replace_configs",
        {"resource": "topic", "topic": "configured", "configs": {"compression.type": "lz4"}},
        DONE,
    ),
    describe("describe after the replacement", {"compression.type": on_topic("lz4")}),
    Step(
        "replace with a malformed value",
        "replace_configs",
        {"resource": "topic", "topic": "configured", "configs": {"compression.type": "brotli"}},
        refused("INVALID_CONFIG"),
    ),
]


def describe_broker(name: str, changed: dict[str, Json]) -> Step:
    defaults = {
        "auto.create.topics.enable": setting("true", read_only=True),
        "log.flush.interval.messages": setting(NEVER),
        "message.max.bytes": setting("1048588"),
        "num.partitions": setting("1", read_only=True),
    }
    arguments = {"resource": "broker", "keys": BROKER_KEYS}
    return Step(name, "describe_configs", arguments, {"error": "NONE", "configs": {**defaults, **changed}})


def alter_broker(name: str, resource: str, *operations: tuple[str, str, str | None], error: str = "NONE") -> Step:
    arguments = {"resource": resource, "operations": [list(each) for each in operations]}
    return Step(name, "alter_configs", arguments, refused(error))


def describe_flush(name: str, value: Json) -> Step:
    arguments = {"resource": "topic", "topic": "configured", "keys": ["flush.messages"]}
    return Step(name, "describe_configs", arguments, {"error": "NONE", "configs": {"flush.messages": value}})


# These change the broker for everyone, so two drivers never run them at once; each leaves the broker as it was.
BROKER_STEPS = [
    describe_broker("the broker's settings", {}),
    alter_broker("set on the broker", "broker", ("set", "message.max.bytes", "1048589")),
    describe_broker("describe it", {"message.max.bytes": setting("1048589", "DYNAMIC_BROKER_CONFIG")}),
    alter_broker("set for all brokers", "broker-default", ("set", "log.flush.interval.messages", "100000")),
    describe_broker(
        "describe both",
        {
            "message.max.bytes": setting("1048589", "DYNAMIC_BROKER_CONFIG"),
            "log.flush.interval.messages": setting("100000", "DYNAMIC_DEFAULT_BROKER_CONFIG"),
        },
    ),
    describe_flush("a topic takes it from there", setting("100000", "DYNAMIC_DEFAULT_BROKER_CONFIG")),
    alter_broker("delete on the broker", "broker", ("delete", "message.max.bytes", None)),
    alter_broker("delete for all brokers", "broker-default", ("delete", "log.flush.interval.messages", None)),
    describe_broker("describe after the deletions", {}),
    describe_flush("a topic no longer takes it", setting(NEVER)),
    alter_broker("a malformed value", "broker", ("set", "message.max.bytes", "much"), error="INVALID_REQUEST"),
    alter_broker("what cannot change", "broker", ("set", "num.partitions", "2"), error="INVALID_REQUEST"),
    describe_broker("describe after the refusals", {}),
]
