"""DescribeConfigs (version 3) by hand: every setting of a topic with its type, source and synonyms."""

from typing import Any

from tests.clients.error_names import error_name
from tests.clients.scenario.steps import CONFIG_SOURCES
from tests.clients.wire.connection import Connection, Reader, array, int8, int32, string
from tests.clients.wire.requests import DESCRIBE_CONFIGS

TOPIC_RESOURCE = 2
TYPES = ("UNKNOWN", "BOOLEAN", "STRING", "INT", "SHORT", "LONG", "DOUBLE", "LIST", "CLASS", "PASSWORD")


def describe_topic_configs(connection: Connection, topic: str) -> dict[str, dict[str, Any]]:
    resource = int8(TOPIC_RESOURCE) + string(topic) + int32(-1)
    answer = connection.ask(DESCRIBE_CONFIGS, 3, array([resource]) + int8(1) + int8(0))
    answer.int32(), answer.int32()  # throttle time, one resource
    if (error := error_name(answer.int16())) != "NONE":
        raise AssertionError(error)
    answer.string(), answer.int8(), answer.string()
    return dict(answer.array(lambda: _entry(answer)))


def _entry(answer: Reader) -> tuple[str, dict[str, Any]]:
    name, value, read_only, source, sensitive = (
        answer.string() or "",
        answer.string(),
        bool(answer.int8()),
        CONFIG_SOURCES[answer.int8()],
        bool(answer.int8()),
    )
    synonyms = answer.array(lambda: [answer.string(), answer.string(), CONFIG_SOURCES[answer.int8()]])
    kind = TYPES[answer.int8()]
    answer.string()  # documentation, which was not asked for
    entry = {"value": value, "type": kind, "source": source, "synonyms": synonyms}
    return name, {**entry, "read_only": read_only, "sensitive": sensitive}
