"""A JSON Schema of definitions, for editors. Keys and words are those of the parser."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from odradek.pipelines.definition.editor_texts import TEXTS
from odradek.pipelines.definition.parsing import PIPELINE_KEYS
from odradek.pipelines.definition.parsing_changes import CHANGES_KEYS
from odradek.pipelines.definition.parsing_lakehouse import LAKEHOUSE_KEYS
from odradek.pipelines.definition.parsing_sinks import SINK_KEYS, TARGETS
from odradek.pipelines.definition.parsing_sources import ORIGINS, SOURCE_KEYS
from odradek.pipelines.definition.parsing_steps import JOIN_KEYS, OPERATIONS, STEP_KEYS, VIEW_KEYS, WINDOW_KEYS
from odradek.pipelines.definition.vocabulary import (
    NAME,
    Connector,
    Delivery,
    Encoding,
    Engine,
    FileFormat,
    JoinKind,
    LakehouseFormat,
    LakehouseMode,
    Late,
    OnDataLoss,
    Otherwise,
    SinkMode,
    StateClock,
    StateOrder,
    StreamJoinKind,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from enum import StrEnum

Schema = dict[str, Any]

VARIABLE: Schema = {"type": "string", "pattern": r"\$\{"}
TEXT: Schema = {"type": "string"}
ANY_TEXT: Schema = {"type": ["string", "number", "boolean"]}
FLAG: Schema = {"anyOf": [{"type": "boolean"}, VARIABLE]}
COUNT: Schema = {"anyOf": [{"type": "integer", "minimum": 1}, VARIABLE]}
DURATION: Schema = {"type": ["string", "number"], "examples": ["100 ms", "30 s", "1 minute", "1 hour 30 minutes"]}
WORDS: Schema = {"anyOf": [TEXT, {"type": "array", "items": TEXT}]}
SETTINGS: Schema = {"type": "object", "additionalProperties": ANY_TEXT}
SOME_SETTINGS: Schema = {**SETTINGS, "minProperties": 1}


def choice(words: type[StrEnum], leave_out: Iterable[str] = ()) -> Schema:
    return {"anyOf": [{"enum": [str(each) for each in words if each not in leave_out]}, VARIABLE]}


def mapping(path: str, properties: Mapping[str, Schema], required: Iterable[str] = (), **more: Any) -> Schema:
    """An object with these keys only; each has its description."""
    return {
        "type": "object",
        "properties": {
            key: {**schema, "description": TEXTS[f"{path}/{key}" if path else key]}
            for key, schema in properties.items()
        },
        "additionalProperties": False,
        **({"required": list(required)} if required else {}),
        **more,
    }


def picked(keys: Iterable[str], schemas: Mapping[str, Schema]) -> dict[str, Schema]:
    """The schemas of the parser's keys; KeyError for a key without one."""
    return {key: schemas[key] for key in keys}


def one_of(keys: Iterable[str]) -> list[Schema]:
    return [{"required": [key]} for key in keys]


def by_name(schema: Schema) -> Schema:
    """An object of declarations by name; an empty section is null."""
    return {"type": ["object", "null"], "propertyNames": {"pattern": NAME.pattern}, "additionalProperties": schema}


def watermark() -> Schema:
    return mapping("watermark", {"column": TEXT, "delay": DURATION, "late": choice(Late)}, ["column", "delay"])


def source() -> Schema:
    record_schema: Schema = {"type": ["string", "object"]}
    schemas: dict[str, Schema] = {
        "topic": TEXT,
        "topics": {"type": "array", "items": TEXT, "minItems": 1},
        "pattern": TEXT,
        "files": mapping(
            "files", {"path": TEXT, "format": choice(FileFormat), "options": SETTINGS}, ["path", "format"]
        ),
        "jdbc": mapping(
            "jdbc",
            {"url": TEXT, "table": TEXT, "query": TEXT, "options": SETTINGS},
            ["url"],
            oneOf=one_of(["table", "query"]),
        ),
        "start": {"type": ["string", "object"]},
        "format": choice(Encoding),
        "bootstrap_servers": TEXT,
        "kafka": SETTINGS,
        "max_records_per_batch": COUNT,
        "on_data_loss": choice(OnDataLoss),
        "tombstones": TEXT,
        "schema": record_schema,
        "writer_schema": record_schema,
        "writer_schemas": {"type": "object"},
        "refresh": DURATION,
        "columns": SETTINGS,
        "watermark": watermark(),
        "stream": FLAG,
    }
    return mapping("source", picked(SOURCE_KEYS, schemas), oneOf=one_of(ORIGINS))


def expectations() -> Schema:
    full = mapping("expectation", {"check": TEXT, "otherwise": choice(Otherwise)}, ["check"])
    return {"type": "object", "additionalProperties": {"anyOf": [TEXT, full]}}


def view(path: str, keys: Iterable[str], required: Iterable[str] = ()) -> Schema:
    schemas = {"from": WORDS, "key": WORDS, "order_by": WORDS, "by": WORDS, "aggregate": SOME_SETTINGS, "url": TEXT}
    schemas["changes"] = changes()
    return mapping(path, picked(keys, schemas), required, oneOf=one_of(["key", "aggregate", "changes"]))


def changes() -> Schema:
    schemas: dict[str, Schema] = {
        "key": WORDS,
        "sequence": TEXT,
        "deletes": ANY_TEXT,
        "history": FLAG,
        "remember": DURATION,
    }
    return mapping("changes", picked(CHANGES_KEYS, schemas), ["key", "sequence"])


def lakehouse() -> Schema:
    schemas: dict[str, Schema] = {
        "format": choice(LakehouseFormat),
        "table": TEXT,
        "path": TEXT,
        "key": WORDS,
        "mode": choice(LakehouseMode),
        "partition_by": WORDS,
    }
    return mapping("lakehouse", picked(LAKEHOUSE_KEYS, schemas), ["format"], oneOf=one_of(["table", "path"]))


def join() -> Schema:
    """A join with a table, or with a stream."""
    common: dict[str, Schema] = {"table": TEXT, "stream": TEXT, "on": WORDS, "within": DURATION}
    words = dict.fromkeys((*map(str, JoinKind), *map(str, StreamJoinKind)))
    how: Schema = {"anyOf": [{"enum": list(words)}, VARIABLE]}
    properties = picked(JOIN_KEYS, {**common, "how": how})
    of_table = {"required": ["table"], "not": {"required": ["within"]}, "properties": {"how": choice(JoinKind)}}
    of_stream = {"required": ["stream", "within"], "properties": {"how": choice(StreamJoinKind)}}
    return mapping("join", properties, ["on"], oneOf=[of_table, of_stream])


def window() -> Schema:
    properties = picked(WINDOW_KEYS, {"column": TEXT, "size": DURATION, "slide": DURATION, "gap": DURATION})
    sessions = {"required": ["gap"], "not": {"required": ["slide"]}}
    return mapping("window", properties, ["column"], oneOf=[{"required": ["size"]}, sessions])


def step() -> Schema:
    schemas: dict[str, Schema] = {
        "from": WORDS,
        "sql": TEXT,
        "python": TEXT,
        "aggregate": SOME_SETTINGS,
        "deduplicate": mapping("deduplicate", {"key": WORDS, "within": DURATION}, ["key"]),
        "join": join(),
        "state": mapping(
            "state",
            {
                "key": WORDS,
                "processor": TEXT,
                "timeout": DURATION,
                "clock": choice(StateClock),
                "order": choice(StateOrder),
            },
            ["key", "processor"],
        ),
        "window": window(),
        "by": WORDS,
        "expect": expectations(),
        "watermark": watermark(),
        "schema": TEXT,
        "view": view("view", VIEW_KEYS[1:]),
    }
    others = [each for each in OPERATIONS if each != "sql"]
    operations = [{"required": ["sql"], "not": {"required": ["from"]}}]
    operations += [{"required": [each, "from"]} for each in others]
    return mapping("step", picked(STEP_KEYS, schemas), oneOf=operations)


def sink() -> Schema:
    schemas: dict[str, Schema] = {
        "from": WORDS,
        "topic": TEXT,
        "files": mapping(
            "sink/files",
            {"path": TEXT, "format": choice(FileFormat), "partition_by": WORDS, "options": SETTINGS},
            ["path"],
        ),
        "table": TEXT,
        "lakehouse": lakehouse(),
        "changes": changes(),
        "spark": mapping("spark", {"format": TEXT, "options": SETTINGS}, ["format"]),
        "console": FLAG,
        "python": TEXT,
        "mode": choice(SinkMode),
        "key": {"anyOf": [ANY_TEXT, {"type": "array", "items": TEXT}]},
        "value": WORDS,
        "format": choice(Encoding, [Encoding.AVRO]),
        "headers": SETTINGS,
        "bootstrap_servers": TEXT,
        "kafka": SETTINGS,
        "deletes": TEXT,
        "order_by": WORDS,
        "url": TEXT,
    }
    return mapping("sink", picked(SINK_KEYS, schemas), ["from"], oneOf=one_of(TARGETS))


def definition_schema() -> Schema:
    """The schema of a whole definition."""
    schemas: dict[str, Schema] = {
        "pipeline": TEXT,
        "engine": choice(Engine),
        "delivery": choice(Delivery),
        "bootstrap_servers": TEXT,
        "kafka": SETTINGS,
        "trigger": DURATION,
        "state_trigger": DURATION,
        "share_reads": FLAG,
        "dead_letters": TEXT,
        "warehouse": TEXT,
        "checkpoints": TEXT,
        "master": TEXT,
        "spark": SETTINGS,
        "connector": choice(Connector),
        "include": WORDS,
        "parameters": {"type": "object"},
        "profiles": {"type": "object"},
        "functions": {"type": "object"},
        "sources": by_name(source()),
        "steps": by_name(step()),
        "sinks": by_name(sink()),
        "views": by_name(view("view", VIEW_KEYS, ["from"])),
    }
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "Odradek pipeline",
        **mapping("", picked(PIPELINE_KEYS, schemas), ["pipeline"]),
    }
