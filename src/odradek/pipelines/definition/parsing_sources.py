"""`sources:` of a definition: topics, files and tables of databases."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from odradek.pipelines.definition.avro_writers import DeclaredSchemas
from odradek.pipelines.definition.fields import Fields
from odradek.pipelines.definition.model import (
    FileOrigin,
    JdbcOrigin,
    Origin,
    RecordFormat,
    Source,
    Start,
    TopicOrigin,
)
from odradek.pipelines.definition.nodes import MappingNode, Node, Scalar, shortened
from odradek.pipelines.definition.parsing_steps import parse_watermark
from odradek.pipelines.definition.schemas import read_schema, read_writer
from odradek.pipelines.definition.vocabulary import (
    Duration,
    Encoding,
    FileFormat,
    OnDataLoss,
    StartAt,
    Tombstones,
    parse_moment,
)

if TYPE_CHECKING:
    from odradek.pipelines.definition.model import RecordSchema
    from odradek.pipelines.definition.places import Problems

ORIGINS = ("topic", "topics", "pattern", "files", "jdbc")
TOPIC_KEYS = ("start", "format", "bootstrap_servers", "kafka", "max_records_per_batch", "on_data_loss", "tombstones")
WRITER_KEYS = ("writer_schema", "writer_schemas")
SOURCE_KEYS = (*ORIGINS, *TOPIC_KEYS, "schema", *WRITER_KEYS, "columns", "watermark", "stream", "refresh")
LARGEST_SCHEMA_ID = 2**32 - 1  # four bytes
START_HINT = "use earliest, latest, a time such as 2026-01-31T12:00:00Z, or offsets: {0: 100, 1: 250}"


def parse_source(name: Scalar, node: Node, problems: Problems) -> Source | None:
    fields = Fields(node, SOURCE_KEYS, f"source '{name.text}'", problems)
    kind = fields.chosen(ORIGINS, hint="for example topic: name")
    if kind is None:
        return None
    is_topic = kind in {"topic", "topics", "pattern"}
    if not is_topic:
        for key in TOPIC_KEYS:
            if key in fields:
                problems.error(fields.key_place(key), f"{key} of {fields.what} applies to topics, not to {kind}")
    origin = topic_origin(fields, kind) if is_topic else file_origin(fields) if kind == "files" else jdbc_origin(fields)
    if kind != "jdbc" and "refresh" in fields:
        problems.error(fields.key_place("refresh"), f"refresh of {fields.what} applies to jdbc, not to {kind}")
    is_stream = fields.flag("stream", default=is_topic)
    if is_stream and kind == "jdbc":
        problems.error(
            fields.place_of("stream"), f"{fields.what} reads a database and cannot be a stream", "remove stream"
        )
    record_format = replace(parse_format(fields, is_topic=is_topic), tombstones=parse_tombstones(fields))
    columns = fields.expressions("columns")
    watermark = parse_watermark(fields)
    if origin is None:
        return None
    return Source(name.text, origin, record_format, columns, watermark, is_stream, name.place)


def parse_tombstones(fields: Fields) -> Tombstones | None:
    return fields.choice("tombstones", Tombstones, Tombstones.DROP) if "tombstones" in fields else None


def parse_format(fields: Fields, *, is_topic: bool) -> RecordFormat:
    encoding = fields.choice("format", Encoding, Encoding.JSON)
    for key in WRITER_KEYS:
        if key in fields and encoding is not Encoding.AVRO:
            fields.problems.error(
                fields.key_place(key), f"{key} of {fields.what} applies to format: avro, not to {encoding}"
            )
    node = fields.node("schema")
    if node is None:
        if is_topic and encoding in {Encoding.JSON, Encoding.AVRO}:
            is_avro = encoding is Encoding.AVRO
            hint = (
                "add schema: {file: record.avsc}" if is_avro else "add schema: id BIGINT, name STRING; or format: text"
            )
            fields.missing("schema", hint)
        return RecordFormat(encoding)
    if encoding in {Encoding.TEXT, Encoding.BYTES}:
        fields.problems.error(
            fields.key_place("schema"),
            f"schema of {fields.what} is not allowed with format: {encoding}",
            "remove schema",
        )
        return RecordFormat(encoding)
    schema = read_schema(node, encoding, f"schema of {fields.what}", fields.problems)
    if schema is not None and encoding is Encoding.AVRO:
        schema = with_writers(fields, schema)
    return RecordFormat(encoding, schema)


def with_writers(fields: Fields, schema: RecordSchema) -> RecordSchema:
    """The schema with those of the records' writers: one for all records, or one for each id in their headers."""
    single, by_id = fields.node("writer_schema"), fields.node("writer_schemas")
    if single is not None and by_id is not None:
        fields.problems.error(
            fields.key_place("writer_schemas"), f"{fields.what} has both writer_schema and writer_schemas", "keep one"
        )
    if single is not None:
        return replace(schema, writer=read_writer(single, schema, f"writer_schema of {fields.what}", fields.problems))
    if by_id is None:
        return schema
    if not isinstance(by_id, MappingNode) or not by_id.entries:
        fields.wrong("writer_schemas", "a mapping of ids to schemas", "write writer_schemas: {1: v1.avsc, 2: v2.avsc}")
        return schema
    found: dict[int, str] = {}
    for key, node in by_id.entries:
        if not re.fullmatch(r"[0-9]{1,10}", key.text) or int(key.text) > LARGEST_SCHEMA_ID:
            fields.problems.error(
                key.place,
                f"'{shortened(key.text)}' in writer_schemas of {fields.what} is not a schema id",
                "write 1: v1.avsc",
            )
            continue
        text = read_writer(node, schema, f"schema {key.text} in writer_schemas of {fields.what}", fields.problems)
        if text is not None:
            found[int(key.text)] = text
    return replace(schema, writers=DeclaredSchemas(found))


def topic_origin(fields: Fields, kind: str) -> TopicOrigin | None:
    topics: tuple[str, ...] = ()
    pattern = None
    if kind == "topic":
        topic = fields.topic("topic")
        topics = () if topic is None else (topic,)
    elif kind == "topics":
        topics = fields.topics("topics")
    else:
        pattern = fields.text("pattern")
        if pattern is not None:
            try:
                re.compile(pattern)
            except re.error as error:
                hint = "write a regular expression, such as rigs-.*"
                fields.problems.error(
                    fields.place_of("pattern"), f"pattern of {fields.what} is not a regular expression: {error}", hint
                )
    start = parse_start(fields, topics)
    servers = fields.text("bootstrap_servers")
    settings = fields.settings("kafka")
    most = fields.count("max_records_per_batch")
    lost = fields.choice("on_data_loss", OnDataLoss, OnDataLoss.FAIL)
    return TopicOrigin(topics, pattern, start, servers, settings, most, lost) if topics or pattern is not None else None


def parse_start(fields: Fields, topics: tuple[str, ...]) -> Start:
    node = fields.node("start")
    if node is None:
        return Start()
    if isinstance(node, MappingNode):
        return parse_offsets(fields, node, topics)
    text = node.text if isinstance(node, Scalar) else ""
    if text in {StartAt.EARLIEST, StartAt.LATEST}:
        return Start(StartAt(text))
    moment = parse_moment(text)
    if moment is None:
        fields.wrong("start", "a starting point", START_HINT)
        return Start()
    return Start(StartAt.TIME, moment)


def parse_offsets(fields: Fields, node: MappingNode, topics: tuple[str, ...]) -> Start:
    """`{0: 100}` for the one topic, or `{topic: {0: 100}}`."""
    offsets: dict[str, dict[int, int]] = {}
    nested = all(isinstance(value, MappingNode) for _key, value in node.entries)
    if not nested and len(topics) != 1:
        hint = "write start: {topic: {partition: offset}}"
        fields.problems.error(
            node.place,
            f"start of {fields.what} has offsets without a topic, and the source does not read exactly one topic",
            hint,
        )
        return Start()
    by_topic = [(key.text, value) for key, value in node.entries] if nested else [(topics[0], node)]
    for topic, entries in by_topic:
        assert isinstance(entries, MappingNode)
        if topics and topic not in topics:
            fields.problems.error(
                entries.place,
                f"start of {fields.what} names the topic '{topic}', which the source does not read",
                f"name one of {', '.join(topics)}",
            )
        found = offsets.setdefault(topic, {})
        for key, value in entries.entries:
            is_offset = isinstance(value, Scalar) and type(value.value) is int and 0 <= value.value < 2**63
            if not is_offset or not re.fullmatch(r"[0-9]{1,9}", key.text):
                fields.problems.error(key.place, f"start of {fields.what} must map partitions to offsets", START_HINT)
                continue
            assert isinstance(value, Scalar)
            assert isinstance(value.value, int)
            found[int(key.text)] = value.value
    return Start(StartAt.OFFSETS, offsets=offsets) if node.entries else Start()


def file_origin(fields: Fields) -> Origin | None:
    node = fields.node("files")
    assert node is not None
    inner = Fields(node, ("path", "format", "options"), f"files of {fields.what}", fields.problems)
    path = inner.text("path", required="name the folder: path: data/readings")
    file_format = inner.choice("format", FileFormat, FileFormat.JSON)
    if "format" not in inner:
        inner.missing("format", "json, csv or parquet")
    options = inner.settings("options")
    return None if path is None else FileOrigin(path, file_format, options)


def jdbc_origin(fields: Fields) -> Origin | None:
    node = fields.node("jdbc")
    assert node is not None
    inner = Fields(node, ("url", "table", "query", "options"), f"jdbc of {fields.what}", fields.problems)
    url = inner.text("url", required="add url: jdbc:postgresql://host/database")
    inner.chosen(("table", "query"))
    options = inner.settings("options")
    refresh = fields.duration("refresh")
    if refresh == Duration(0):
        fields.wrong("refresh", "longer than 0", "without refresh the table is read in every batch")
    return None if url is None else JdbcOrigin(url, inner.text("table"), inner.text("query"), options, refresh)
