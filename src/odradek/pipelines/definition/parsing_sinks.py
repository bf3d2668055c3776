"""`sinks:` of a definition: topics, files, tables, other Spark formats, the console, Python functions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.pipelines.definition.fields import Fields
from odradek.pipelines.definition.model import (
    ConsoleTarget,
    FilesTarget,
    LakehouseTarget,
    PythonTarget,
    Sink,
    SparkTarget,
    TableTarget,
    Target,
    TopicTarget,
)
from odradek.pipelines.definition.parsing_changes import parse_changes, refuse_beside_changes
from odradek.pipelines.definition.parsing_lakehouse import lakehouse_target
from odradek.pipelines.definition.parsing_steps import INPUT_HINT
from odradek.pipelines.definition.vocabulary import Encoding, FileFormat, SinkMode

if TYPE_CHECKING:
    from odradek.pipelines.definition.nodes import Node, Scalar
    from odradek.pipelines.definition.places import Problems

TARGETS = ("topic", "files", "table", "lakehouse", "spark", "console", "python")
TOPIC_KEYS = ("key", "value", "format", "headers", "bootstrap_servers", "kafka", "deletes")
SINK_KEYS = ("from", *TARGETS, "mode", *TOPIC_KEYS, "url", "order_by", "changes")
BELONGS_TO = {
    "key": ("topic", "table"),
    "mode": ("topic", "files", "table", "spark", "console", "python"),
    "value": ("topic",),
    "format": ("topic",),
    "headers": ("topic",),
    "bootstrap_servers": ("topic",),
    "kafka": ("topic",),
    "deletes": ("topic",),
    "url": ("table",),
    "order_by": ("table",),
    "changes": ("table",),
}


def parse_sink(name: Scalar, node: Node, problems: Problems) -> Sink | None:
    fields = Fields(node, SINK_KEYS, f"sink '{name.text}'", problems)
    kind = fields.chosen(TARGETS, hint="for example topic: name")
    inputs = fields.words("from", required=INPUT_HINT)
    if len(inputs) > 1:
        hint = "combine them in a SQL step, or declare a sink for each"
        problems.error(fields.place_of("from"), f"{fields.what} takes one input", hint)
    if kind is None:
        return None
    for key, owners in BELONGS_TO.items():
        if key in fields and kind not in owners:
            problems.error(
                fields.key_place(key), f"{key} of {fields.what} applies to {' or '.join(owners)}, not to {kind}"
            )
    if "changes" in fields:
        refuse_beside_changes(fields)
    target = parse_target(fields, kind)
    if isinstance(target, LakehouseTarget):
        mode = SinkMode.UPSERT if target.key else SinkMode.APPEND
    else:
        mode = SinkMode.APPEND if "changes" in fields else parse_mode(fields, kind)
    return Sink(name.text, inputs[0], target, mode, name.place) if inputs and target is not None else None


def parse_mode(fields: Fields, kind: str) -> SinkMode:
    """The sink's mode: by default upsert for a table with a key, append for other sinks."""
    default = SinkMode.UPSERT if kind == "table" and "key" in fields else SinkMode.APPEND
    mode = fields.choice("mode", SinkMode, default)
    if mode is SinkMode.UPSERT and kind != "table":
        fields.wrong("mode", "append or update", "only tables can be upserted")
    elif mode is SinkMode.UPDATE and kind in {"table", "files"}:
        fields.wrong("mode", "upsert or append" if kind == "table" else "append")
    elif mode is SinkMode.UPSERT and "key" not in fields:
        fields.problems.error(
            fields.place_of("mode"), f"{fields.what} has mode: upsert but no key", "name the key columns: key: [id]"
        )
    if "order_by" in fields and kind == "table" and mode is not SinkMode.UPSERT:
        fields.problems.error(
            fields.key_place("order_by"),
            f"{fields.what} has order_by, which decides between rows of the same key, but its rows are appended",
            "name the key columns: key: [id], and remove mode: append",
        )
    elif "key" in fields and kind == "table" and mode is SinkMode.APPEND:
        fields.problems.error(
            fields.key_place("key"),
            f"{fields.what} has a key, and its rows are appended: no row would replace that of its key",
            "remove key, or mode: append",
        )
    return mode


def parse_target(fields: Fields, kind: str) -> Target | None:
    if kind == "topic":
        return topic_target(fields)
    if kind == "files":
        return files_target(fields)
    if kind == "table":
        table = fields.text("table")
        key, url, order_by = fields.words("key"), fields.text("url"), fields.words("order_by")
        changes = parse_changes(fields)
        return None if table is None else TableTarget(table, key, url, order_by, changes)
    if kind == "lakehouse":
        return lakehouse_target(fields)
    if kind == "spark":
        return spark_target(fields)
    if kind == "console":
        if not fields.flag("console", default=True):
            fields.wrong("console", "true", "remove the sink to disable it")
        return ConsoleTarget()
    function = fields.reference("python")
    return None if function is None else PythonTarget(function)


def topic_target(fields: Fields) -> TopicTarget | None:
    topic = fields.topic("topic")
    encoding = fields.choice("format", Encoding, Encoding.JSON)
    value = fields.words("value")
    if encoding is Encoding.AVRO:
        fields.wrong("format", "json, text or bytes", "Avro is supported in sources only")
    elif encoding is not Encoding.JSON and len(value) != 1:
        fields.problems.error(
            fields.place_of("value"),
            f"{fields.what} with format: {encoding} needs exactly one expression as its value",
            "for example value: message",
        )
    key = fields.text("key", loose=True)
    headers = fields.expressions("headers")
    servers, settings = fields.text("bootstrap_servers"), fields.settings("kafka")
    deletes = fields.text("deletes", loose=True)
    if deletes is not None and key is None:
        fields.problems.error(
            fields.place_of("deletes"), f"{fields.what} writes tombstones, and has no key", "add key: an SQL expression"
        )
    return None if topic is None else TopicTarget(topic, key, value, encoding, headers, servers, settings, deletes)


def files_target(fields: Fields) -> FilesTarget | None:
    node = fields.node("files")
    assert node is not None
    inner = Fields(node, ("path", "format", "partition_by", "options"), f"files of {fields.what}", fields.problems)
    path = inner.text("path", required="name the folder: path: out/readings")
    file_format = inner.choice("format", FileFormat, FileFormat.PARQUET)
    partition_by, options = inner.words("partition_by"), inner.settings("options")
    return None if path is None else FilesTarget(path, file_format, partition_by, options)


def spark_target(fields: Fields) -> SparkTarget | None:
    node = fields.node("spark")
    assert node is not None
    inner = Fields(node, ("format", "options"), f"spark of {fields.what}", fields.problems)
    name = inner.text("format", required="name the Spark format: format: delta")
    options = inner.settings("options")
    return None if name is None else SparkTarget(name, options)
