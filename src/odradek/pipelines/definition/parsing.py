"""Parses a tree of values into the model of a pipeline, by `keys`. Invalid parts are reported as problems and left out.

`Values` reads a mapping by its keys. Here a function for each section builds the model, and checks what one key says
about another.
"""

from __future__ import annotations

import dataclasses
import re
from typing import TYPE_CHECKING, Any, TypeVar

from odradek.pipelines.definition import model, operations, vocabulary
from odradek.pipelines.definition.keys import PIPELINE, SETTINGS, TOPICS
from odradek.pipelines.definition.nodes import MappingNode, Node, Scalar, describe, shortened
from odradek.pipelines.definition.schemas import read_columns, read_schema, read_writer
from odradek.pipelines.definition.values import Values

if TYPE_CHECKING:
    from collections.abc import Callable

    from odradek.pipelines.definition.column_types import Column
    from odradek.pipelines.definition.places import Problems

Declared = TypeVar("Declared", model.Source, model.Step, model.Sink, model.View)
LARGEST_SCHEMA_ID = 2**32 - 1  # four bytes
START_HINT = "use earliest, latest, a time such as 2026-01-31T12:00:00Z, or offsets: {topic: {0: 100, 1: 250}}"


def parse_pipeline(root: Node, problems: Problems) -> model.Parsed | None:
    """The model, or None if the tree is not a pipeline definition at all."""
    if not isinstance(root, MappingNode):
        hint = "start with `pipeline: name`"
        problems.error(root.place, f"a definition must be a mapping, not {describe(root)}", hint)
        return None
    found = Values(root, PIPELINE, "the pipeline", problems)
    name = found["pipeline"] or ""
    if "pipeline" not in found:
        problems.error(root.place, "the pipeline has no name", "start with `pipeline: name`")
    if name and not vocabulary.PIPELINE_NAME.match(name):
        found.wrong("pipeline", "a name", "use letters, digits, dashes and underscores")
    broken: set[str] = set()
    views: list[model.View] = []

    def step(key: Scalar, values: Values) -> model.Step | None:
        operation = OPERATIONS[values.kind](values) if values.kind else None
        if operation is None:
            return None
        if values["view"] is not None:
            views.extend(filter(None, [view_of(key, values["view"], key.text)]))
        return model.Step(key.text, operation, values["expect"], watermark_of(values), key.place, values.places)

    sections = {
        "sources": section(found, "sources", source_of, broken),
        "steps": section(found, "steps", step, broken),
        "sinks": section(found, "sinks", sink_of, set()),
    }
    views += section(found, "views", lambda key, values: view_of(key, values, values["from"]), set())
    made: dict[str, Any] = {**sections, **{each.name: found[each.name] for each in SETTINGS}}
    pipeline = model.Pipeline(name, **made, views=tuple(views), secrets=frozenset(problems.secrets), place=root.place)
    return model.Parsed(pipeline, frozenset(broken))


def section(
    found: Values, name: str, build: Callable[[Scalar, Values], Declared | None], broken: set[str]
) -> tuple[Declared, ...]:
    """The declarations of one section, by name."""
    node = found[name]
    if node is None or (isinstance(node, Scalar) and node.value is None):
        return ()
    if not isinstance(node, MappingNode):
        found.wrong(name, "a mapping of names", f"{name}: {{name: …}}")
        return ()
    key = next(each for each in PIPELINE.keys if each.name == name)
    what = name.removesuffix("s")
    made = []
    for each, value in node.entries:
        if not vocabulary.NAME.match(each.text):
            hint = "use letters, digits and underscores, and do not start with a digit"
            found.problems.error(each.place, f"'{shortened(each.text)}' cannot be the name of a {what}", hint)
        declared = build(each, Values(value, key, f"{what} '{each.text}'", found.problems))
        if declared is None:
            broken.add(each.text)
        else:
            made.append(declared)
    return tuple(made)


def watermark_of(found: Values) -> model.Watermark | None:
    values = found["watermark"]
    return None if values is None else values.made(model.Watermark, place=values.place)


def source_of(name: Scalar, found: Values) -> model.Source | None:
    kind = found.kind
    if kind is None:
        return None
    is_topic = kind in TOPICS
    is_stream = is_topic if found["stream"] is None else found["stream"]
    if is_stream and kind == "jdbc":
        where = found.place_of("stream")
        found.problems.error(where, f"{found.what} reads a database and cannot be a stream", "remove stream")
    record = record_format(found, is_topic=is_topic)
    origin: model.Origin | None
    if is_topic:
        origin = topic_origin(found)
    else:
        more = {} if kind == "files" else {"refresh": found["refresh"]}
        origin = found[kind].made(model.FileOrigin if kind == "files" else model.JdbcOrigin, **more)
    if origin is None:
        return None
    watermark = watermark_of(found)
    return model.Source(name.text, origin, record, found["columns"], watermark, is_stream, name.place, found.places)


def topic_origin(found: Values) -> model.TopicOrigin | None:
    topics = found["topics"] or tuple(filter(None, [found["topic"]]))
    pattern = found["pattern"]
    if pattern is not None:
        try:
            re.compile(pattern)
        except re.error as error:
            message = f"pattern of {found.what} is not a regular expression: {error}"
            found.problems.error(found.place_of("pattern"), message, "write a regular expression, such as rigs-.*")
    start = start_of(found, topics)
    if not topics and pattern is None:
        return None
    most, lost = found["max_records_per_batch"], found["on_data_loss"]
    return model.TopicOrigin(topics, pattern, start, found["bootstrap_servers"], found["kafka"], most, lost)


def start_of(found: Values, topics: tuple[str, ...]) -> model.Start:
    node = found["start"]
    if node is None:
        return model.Start()
    if isinstance(node, MappingNode):
        return offsets_of(found, node, topics)
    text = node.text if isinstance(node, Scalar) else ""
    if text in {vocabulary.StartAt.EARLIEST, vocabulary.StartAt.LATEST}:
        return model.Start(vocabulary.StartAt(text))
    moment = vocabulary.parse_moment(text)
    if moment is None:
        found.wrong("start", "a starting point", START_HINT)
        return model.Start()
    return model.Start(vocabulary.StartAt.TIME, moment)


def offsets_of(found: Values, node: MappingNode, topics: tuple[str, ...]) -> model.Start:
    """`{topic: {0: 100}}`."""
    what = f"start of {found.what}"
    offsets: dict[str, dict[int, int]] = {}
    for topic, value in node.entries:
        if topics and topic.text not in topics:
            message = f"{what} names the topic '{shortened(topic.text)}', which the source does not read"
            found.problems.error(topic.place, message, f"name one of {', '.join(topics)}")
        partitions = offsets.setdefault(topic.text, {})
        for key, offset in value.entries if isinstance(value, MappingNode) else ((topic, value),):
            at = offset.value if isinstance(offset, Scalar) and isinstance(value, MappingNode) else None
            if type(at) is int and 0 <= at < 2**63 and re.fullmatch(r"[0-9]{1,9}", key.text):
                partitions[int(key.text)] = at
            else:
                found.problems.error(key.place, f"{what} must map partitions to offsets", START_HINT)
    return model.Start(vocabulary.StartAt.OFFSETS, offsets=offsets) if node.entries else model.Start()


def record_format(found: Values, *, is_topic: bool) -> model.RecordFormat:
    encoding = found["format"] or vocabulary.Encoding.JSON
    if "writer_schemas" in found and encoding is not vocabulary.Encoding.AVRO:
        found.error("writer_schemas", f"writer_schemas of {found.what} applies to format: avro, not to {encoding}")
    node, schema = found["schema"], None
    if node is None:
        if is_topic and encoding in {vocabulary.Encoding.JSON, vocabulary.Encoding.AVRO}:
            is_avro = encoding is vocabulary.Encoding.AVRO
            form = "{file: record.avsc}" if is_avro else "id BIGINT, name STRING; or format: text"
            found.missing("schema", f"add schema: {form}")
    elif encoding in {vocabulary.Encoding.TEXT, vocabulary.Encoding.BYTES}:
        found.error("schema", f"schema of {found.what} is not allowed with format: {encoding}", "remove schema")
    else:
        schema = read_schema(node, encoding, f"schema of {found.what}", found.problems)
        if schema is not None and encoding is vocabulary.Encoding.AVRO:
            schema = with_writers(found, schema)
    return model.RecordFormat(encoding, schema, found["tombstones"])


def with_writers(found: Values, schema: model.RecordSchema) -> model.RecordSchema:
    """The schema with those of the records' writers, one for each id in their headers."""
    by_id, problems = found["writer_schemas"], found.problems
    if by_id is None:
        return schema
    if not isinstance(by_id, MappingNode) or not by_id.entries:
        found.wrong("writer_schemas", "a mapping of ids to schemas", "write writer_schemas: {1: v1.avsc, 2: v2.avsc}")
        return schema
    what = f"in writer_schemas of {found.what}"
    writers: dict[int, str] = {}
    for key, node in by_id.entries:
        if not re.fullmatch(r"[0-9]{1,10}", key.text) or int(key.text) > LARGEST_SCHEMA_ID:
            problems.error(key.place, f"'{shortened(key.text)}' {what} is not a schema id", "write 1: v1.avsc")
            continue
        text = read_writer(node, f"schema {key.text} {what}", problems)
        if text is not None:
            writers[int(key.text)] = text
    return dataclasses.replace(schema, writers=writers)


def sql_of(found: Values) -> operations.Sql | None:
    return None if found["sql"] is None else operations.Sql(found["sql"], found.place_of("sql"))


def python_of(found: Values) -> operations.PythonFunction | None:
    inputs, function, columns = found["from"], found["python"], schema_of(found)
    return operations.PythonFunction(inputs, function, columns) if function is not None and inputs else None


def schema_of(found: Values) -> tuple[Column, ...] | None:
    node = found["schema"]
    return None if node is None else read_columns(node, f"schema of {found.what}", found.problems)


def aggregation_of(found: Values) -> operations.Aggregation | None:
    window = None if found["window"] is None else window_of(found["window"])
    return operations.Aggregation(found["from"], found["aggregate"], found["by"], window) if found["from"] else None


def window_of(found: Values) -> operations.Window | None:
    size, slide = found["size"], found["slide"]
    if slide is not None and size is not None and not 0 < slide.milliseconds <= size.milliseconds:
        hint = "a longer slide would leave gaps between windows"
        found.wrong("slide", f"longer than 0 and at most the size, {size}", hint)
    has_length = size is not None or found["gap"] is not None
    return found.made(operations.Window, place=found.place) if has_length else None


def deduplication_of(found: Values) -> operations.Deduplication | None:
    return found["deduplicate"].made(operations.Deduplication, input=found["from"]) if found["from"] else None


def join_of(found: Values) -> operations.StreamJoin | None:
    values: Values = found["join"]
    if not values.is_whole or not found["from"]:
        return None
    within = None if values["within"] is vocabulary.Unbounded.FOREVER else values["within"]
    return operations.StreamJoin(found["from"], values["stream"], values["on"], within, values["how"])


def state_of(found: Values) -> operations.KeyedState | None:
    columns = schema_of(found)
    return found["state"].made(operations.KeyedState, input=found["from"], columns=columns) if found["from"] else None


OPERATIONS: dict[str, Callable[[Values], operations.Operation | None]] = {
    "sql": sql_of,
    "python": python_of,
    "aggregate": aggregation_of,
    "deduplicate": deduplication_of,
    "join": join_of,
    "state": state_of,
}


def view_of(name: Scalar, found: Values, source: str | None) -> model.View | None:
    """A view of a source or step, which may be the step that declares it."""
    content: model.LatestRows | model.RunningAggregate | model.Changes | None = None
    if found.kind == "key":
        content = model.LatestRows(found["key"], found["order_by"]) if found["key"] else None
    elif found.kind == "aggregate":
        content = model.RunningAggregate(found["by"], found["aggregate"])
    elif found.kind == "changes":
        content = changes_of(found)
    if content is None or not source:
        return None
    return model.View(name.text, source, content, name.place, found.places, found["url"])


def changes_of(found: Values) -> model.Changes | None:
    values: Values | None = found["changes"]
    if values is None:
        return None
    key, sequence = values["key"], values["sequence"]
    if values["remember"] is not None and values["history"]:
        message = f"{values.what} has history: true, which keeps deletions as it keeps every change"
        values.error("remember", message, "remove remember")
    if sequence is not None and sequence.lower() in map(str.lower, key):
        where = values.place_of("sequence")
        values.problems.error(where, f"{values.what} has '{sequence}' in its key", "name another column")
    if not values.is_whole:
        return None
    return model.Changes(key, sequence, values["deletes"], values["history"], values["remember"])


def refuse_beside_changes(found: Values) -> None:
    """Refuses other keys that decide which rows are kept."""
    for key in ("key", "order_by"):
        if key in found:
            message = f"{found.what} has {key}, and its changes decide which rows are kept"
            found.error(key, message, f"remove {key}")


def sink_of(name: Scalar, found: Values) -> model.Sink | None:
    target = TARGETS[found.kind](found) if found.kind else None
    if "changes" in found:
        refuse_beside_changes(found)
    elif "order_by" in found and "key" not in found:
        message = f"{found.what} has order_by, which decides between rows of the same key, and no key"
        found.error("order_by", message, "name the key columns: key: [id]")
    if target is None or not found["from"]:
        return None
    mode = found["mode"] or vocabulary.SinkMode.APPEND
    return model.Sink(name.text, found["from"], target, mode, name.place, found.places)


def topic_target(found: Values) -> model.TopicTarget | None:
    encoding, value, deletes = found["format"], found["value"], found["deletes"]
    if encoding is not vocabulary.Encoding.JSON and len(value) != 1:
        message = f"{found.what} with format: {encoding} needs exactly one expression as its value"
        found.problems.error(found.place_of("value"), message, "for example value: message")
    if deletes is not None and found["key"] is None:
        message = f"{found.what} writes tombstones, and has no key"
        found.problems.error(found.place_of("deletes"), message, "add key: an SQL expression")
    if found["topic"] is None:
        return None
    key, headers, servers, settings = (found[each] for each in ("key", "headers", "bootstrap_servers", "kafka"))
    return model.TopicTarget(found["topic"], key, value, encoding, headers, servers, settings, deletes)


def table_target(found: Values) -> model.TableTarget | None:
    changes = changes_of(found)
    if found["table"] is None:
        return None
    return model.TableTarget(found["table"], found["key"], found["url"], found["order_by"], changes)


def lakehouse_target(found: Values) -> model.LakehouseTarget | None:
    inner: Values = found["lakehouse"]
    if inner["format"] is vocabulary.LakehouseFormat.ICEBERG and inner["path"] is not None:
        message = f"{inner.what} has a path, and Iceberg tables are found by their name in a catalog"
        hint = "write table: catalog.schema.name, and set the catalog under spark: of the pipeline"
        inner.error("path", message, hint)
    return inner.made(model.LakehouseTarget)


def console_target(found: Values) -> model.ConsoleTarget:
    if not found["console"]:
        found.wrong("console", "true", "remove the sink to disable it")
    return model.ConsoleTarget()


TARGETS: dict[str, Callable[[Values], model.Target | None]] = {
    "topic": topic_target,
    "files": lambda found: found["files"].made(model.FilesTarget),
    "table": table_target,
    "lakehouse": lakehouse_target,
    "spark": lambda found: found["spark"].made(model.SparkTarget),
    "console": console_target,
    "python": lambda found: None if found["python"] is None else model.PythonTarget(found["python"]),
}
