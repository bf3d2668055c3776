"""A JSON Schema of definitions, for editors, made of `keys`. Which keys exclude each other is said by `validate`."""

from __future__ import annotations

from typing import Any

from odradek.pipelines.definition.keys import PIPELINE, Key, Kind
from odradek.pipelines.definition.vocabulary import NAME

Schema = dict[str, Any]

VARIABLE: Schema = {"type": "string", "pattern": r"\$\{"}
TEXT: Schema = {"type": "string"}
ANY_TEXT: Schema = {"type": ["string", "number", "boolean"]}
DURATION: Schema = {"type": ["string", "number"], "examples": ["100 ms", "30 s", "1 minute", "1 hour 30 minutes"]}
NAMES: Schema = {"anyOf": [TEXT, {"type": "array", "items": TEXT}]}
SETTINGS: Schema = {"type": "object", "additionalProperties": ANY_TEXT}
OBJECT: Schema = {"type": "object"}
DOCUMENT: Schema = {"type": ["string", "object"]}
KINDS: dict[Kind, Schema] = {
    **dict.fromkeys((Kind.DURATION, Kind.PERIOD), DURATION),
    **dict.fromkeys((Kind.NAMES, Kind.INPUT), NAMES),
    **dict.fromkeys((Kind.SCHEMA, Kind.START), DOCUMENT),
    **dict.fromkeys((Kind.OTHER, Kind.WRITERS), OBJECT),
    Kind.TOPICS: {"type": "array", "items": TEXT, "minItems": 1},
    Kind.FLAG: {"anyOf": [{"type": "boolean"}, VARIABLE]},
    Kind.COUNT: {"anyOf": [{"type": "integer", "minimum": 1}, VARIABLE]},
    Kind.SQL: ANY_TEXT,
    Kind.SETTINGS: SETTINGS,
}


def definition_schema() -> Schema:
    """The schema of a whole definition."""
    head = {"$schema": "http://json-schema.org/draft-07/schema#", "title": "Odradek pipeline"}
    return {**head, **mapping(PIPELINE), "required": ["pipeline"]}


def mapping(key: Key) -> Schema:
    """An object of these keys only."""
    properties = {}
    for name in key.names:
        options = [each for each in key.keys if each.name == name]
        schemas = [value(each) for each in options]
        schema = schemas[0] if len(schemas) == 1 else {"anyOf": schemas}
        properties[name] = {**schema, "description": " ".join(each.description for each in options)}
    made: Schema = {"type": "object", "properties": properties, "additionalProperties": False}
    required = [each.name for each in key.keys if each.required and not each.owners]
    return made | ({"required": required} if required else {})


def value(key: Key) -> Schema:
    """The schema of a key's value."""
    if key.kind is Kind.WORD:
        return {"anyOf": [{"enum": list(map(str, key.words))}, VARIABLE]}
    if key.kind is Kind.KEYS:
        return mapping(key)
    if key.kind is Kind.NAMED:  # an empty section is null
        names = {"propertyNames": {"pattern": NAME.pattern}}
        return {"type": ["object", "null"], **names, "additionalProperties": mapping(key)}
    if key.kind is Kind.EXPECTATIONS:
        return {"type": "object", "additionalProperties": {"anyOf": [TEXT, mapping(key)]}}
    if key.kind is Kind.EXPRESSIONS:
        return {**SETTINGS, "minProperties": 1} if key.required else SETTINGS
    return KINDS.get(key.kind, TEXT)
