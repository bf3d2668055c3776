"""The JSON Schema for editors has the keys of the parser."""

from __future__ import annotations

import copy
import re
from typing import Any

import pytest
import yaml

from odradek.pipelines.definition.editor_schema import definition_schema
from tests.pipelines.definition.definitions import reported

SCHEMA = definition_schema()
WHOLE: dict[str, Any] = {
    "pipeline": "p",
    "engine": "standard",
    "kafka": {"client.id": "a"},
    "trigger": "1 s",
    "dead_letters": "dead",
    "sources": {
        "rigs": {
            "topic": "rigs",
            "schema": "id BIGINT, at TIMESTAMP, name STRING",
            "columns": {"two": "id + 1"},
            "watermark": {"column": "at", "delay": "1 minute"},
        },
        "pumps": {"files": {"path": "x", "format": "csv", "options": {"header": True}}, "schema": "id BIGINT"},
        "base": {"jdbc": {"url": "jdbc:postgresql://h/d", "table": "t"}},
    },
    "steps": {
        "queried": {"sql": "select id, at from rigs", "expect": {"a": "id > 0", "b": {"check": "id > 1"}}},
        "counted": {
            "from": "rigs",
            "aggregate": {"n": "count(*)"},
            "by": ["id"],
            "window": {"column": "at", "size": "1 minute"},
            "view": {"key": ["id"], "order_by": "n"},
        },
        "once": {"from": "rigs", "deduplicate": {"key": ["id"], "within": "1 minute"}},
        "joined": {"sql": "select * from rigs left join pumps using (id)"},
        "visits": {"from": "rigs", "aggregate": {"n": "count(*)"}, "window": {"column": "at", "gap": "1 minute"}},
        "pairs": {"from": "rigs", "join": {"stream": "rigs", "on": ["id"], "within": "1 minute", "how": "full"}},
    },
    "sinks": {
        "out": {"from": "queried", "topic": "out", "key": "id", "headers": {"h": "id"}, "format": "json"},
        "files": {"from": "once", "files": {"path": "y", "format": "json", "partition_by": ["id"]}},
        "table": {"from": "joined", "table": "t", "key": ["id"]},
        "other": {"from": "base", "spark": {"format": "delta", "options": {"a": "b"}}},
        "screen": {"from": "queried", "console": True},
    },
    "views": {"last": {"from": "queried", "key": ["id"]}, "sums": {"from": "rigs", "aggregate": {"n": "sum(id)"}}},
}
FREE = {"kafka", "spark", "columns", "aggregate", "headers", "options", "expect", "sources", "steps", "sinks", "views"}


def accepts(schema: dict[str, Any], value: Any) -> bool:
    """Whether a value is valid; the part of JSON Schema that the definition's schema uses."""
    kinds: dict[str, Any] = {
        "string": str,
        "object": dict,
        "array": list,
        "boolean": bool,
        "number": (int, float),
        "integer": int,
    }
    wanted = schema.get("type", [])
    names = [wanted] if isinstance(wanted, str) else wanted
    if names and not any(each == "null" if value is None else isinstance(value, kinds.get(each, ())) for each in names):
        return False
    if "enum" in schema and value not in schema["enum"]:
        return False
    if "pattern" in schema and not re.search(schema["pattern"], value):
        return False
    if "anyOf" in schema and not any(accepts(each, value) for each in schema["anyOf"]):
        return False
    if isinstance(value, list):
        return len(value) >= schema.get("minItems", 0) and all(accepts(schema.get("items", {}), each) for each in value)
    return not isinstance(value, dict) or accepts_object(schema, value)


def accepts_object(schema: dict[str, Any], value: dict[str, Any]) -> bool:
    properties, others = schema.get("properties", {}), schema.get("additionalProperties", {})
    if len(value) < schema.get("minProperties", 0) or not set(schema.get("required", ())) <= value.keys():
        return False
    return all(
        accepts(properties[key], item) if key in properties else others is not False and accepts(others, item)
        for key, item in value.items()
    )


def mappings(value: Any, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """The paths of the mappings whose keys are fixed."""
    if not isinstance(value, dict):
        return []
    own = [path] if not path or path[-1] not in FREE else []
    return own + [found for key, item in value.items() for found in mappings(item, (*path, key))]


def below(definition: dict[str, Any], path: tuple[str, ...]) -> dict[str, Any]:
    for key in path:
        definition = definition[key]
    return definition


def schema_keys(path: tuple[str, ...]) -> set[str]:
    """The keys of a mapping in the schema."""
    found = SCHEMA
    for key in path:
        found = found["properties"][key] if key in found.get("properties", {}) else found["additionalProperties"]
        found = next((each for each in found.get("anyOf", []) if each.get("type") == "object"), found)
    return set(found["properties"])


def test_a_valid_definition_is_accepted_by_both() -> None:
    assert [line for line in reported(yaml.safe_dump(WHOLE)) if "unknown key" in line] == []
    assert accepts(SCHEMA, WHOLE)


@pytest.mark.parametrize("path", mappings(WHOLE), ids="/".join)
def test_the_known_keys_are_the_parsers(path: tuple[str, ...]) -> None:
    """The parser lists the known keys of a mapping when it finds an unknown one."""
    definition = copy.deepcopy(WHOLE)
    below(definition, path)["qqqqqq"] = 1
    assert not accepts(SCHEMA, definition)
    (problem,) = [line for line in reported(yaml.safe_dump(definition)) if "unknown key 'qqqqqq'" in line]
    listed = problem.partition("known keys: ")[2].removesuffix(", …").split(", ")
    assert set(listed) <= schema_keys(path)
