"""DescribeConfigs (version 3) by hand: every setting with its type, source and synonyms; changes of one setting."""

from typing import Any

from tests.clients.error_names import error_name
from tests.clients.scenario.steps import CONFIG_SOURCES
from tests.clients.wire.connection import Connection, Reader, array, int8, int32, string
from tests.clients.wire.requests import DESCRIBE_CONFIGS

TOPIC_RESOURCE, BROKER_RESOURCE = 2, 4
SET, DELETE = 0, 1
INCREMENTAL_ALTER_CONFIGS = 44
TYPES = ("UNKNOWN", "BOOLEAN", "STRING", "INT", "SHORT", "LONG", "DOUBLE", "LIST", "CLASS", "PASSWORD")


def describe_topic_configs(connection: Connection, topic: str) -> dict[str, dict[str, Any]]:
    return describe_configs(connection, TOPIC_RESOURCE, topic)


def alter_config(connection: Connection, resource: tuple[int, str], name: str, value: str | None) -> tuple[str, str]:
    """(error, message) of a setting that is set, or deleted without a value."""
    change = string(name) + int8(SET if value is not None else DELETE) + string(value)
    entry = int8(resource[0]) + string(resource[1]) + array([change])
    answer = connection.ask(INCREMENTAL_ALTER_CONFIGS, 0, array([entry]) + int8(0))
    answer.int32(), answer.int32()  # throttle time, one resource
    return error_name(answer.int16()), answer.string() or ""


def describe_configs(connection: Connection, resource_type: int, resource_name: str) -> dict[str, dict[str, Any]]:
    resource = int8(resource_type) + string(resource_name) + int32(-1)
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
