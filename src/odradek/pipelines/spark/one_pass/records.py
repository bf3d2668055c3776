"""Records to be written to topics, as expressions over the rows that they are made of."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import types as T  # noqa: N812 - its usual name

from odradek.pipelines.definition.vocabulary import Encoding
from odradek.pipelines.spark.dead_letters import (
    ID_HEADER,
    NO_HEADERS,
    PIPELINE_HEADER,
    REASON_HEADER,
    SOURCE_HEADER,
    STEP_HEADER,
    TOPIC_HEADER,
)
from odradek.pipelines.spark.hidden_columns import ORIGIN, quoted, visible_names
from odradek.pipelines.spark.one_pass.row_columns import literal, struct_of
from odradek.pipelines.spark.one_pass.selecting import Scope

if TYPE_CHECKING:
    from odradek.pipelines.definition.model import Sink, TopicTarget
    from odradek.pipelines.spark.one_pass.row_columns import RowColumns, Rows

JSON_OPTIONS = "map('ignoreNullFields', 'false')"
REASON = "reason"


def add_letters(columns: RowColumns, pipeline: str, place: str, refused: Rows, topic: str) -> Rows:
    """Dead letters of what was refused: rows with an origin and a reason, or without origin with the row as JSON."""
    row = refused.row
    headers = {
        REASON_HEADER: f"{row}.{REASON}",
        PIPELINE_HEADER: literal(pipeline),
        STEP_HEADER: literal(place),
    }
    if ORIGIN in refused.fields.names:
        origin = f"{row}.{ORIGIN}"
        key, value, own = f"{origin}.key", f"{origin}.value", f"coalesce({origin}.headers, {NO_HEADERS})"
        headers[TOPIC_HEADER] = f"{origin}.topic"
        headers[SOURCE_HEADER] = f"concat_ws(':', {origin}.partition, {origin}.offset)"
        headers[ID_HEADER] = identity(pipeline, place, origin_parts(row))
    else:
        key, value, own = "cast(null as binary)", f"cast({row}.json as binary)", NO_HEADERS
        headers[ID_HEADER] = identity(pipeline, place, [f"hex(xxhash64({row}.json))"])
    record = {
        "topic": literal(topic),
        "key": key,
        "value": value,
        "headers": f"concat({headers_sql(headers)}, {own})",
    }
    return columns.add(f"__letters_{place}", refused.mapped(struct_of(record)))


def add_records(columns: RowColumns, pipeline: str, sink: Sink, target: TopicTarget, rows: Rows) -> Rows:
    """The records of a topic sink."""
    scope = Scope(sink.input.lower(), rows)
    key = "cast(null as binary)" if target.key is None else as_bytes(columns, rows, scope.text(target.key))
    if target.encoding is Encoding.JSON:
        names = target.value or visible_names(rows.fields.names)
        fields = struct_of({name: scope.text(quoted(name)) for name in names})
        value = f"cast(to_json({fields}, {JSON_OPTIONS}) as binary)"
    else:
        value = as_bytes(columns, rows, scope.text(target.value[0]))
    own = {each.name: scope.text(each.expression) for each in target.headers}
    parts = {"key": key, "value": value}
    if own:
        parts["own"] = headers_sql(own)
    if ORIGIN in rows.fields.names:
        parts[ORIGIN] = f"{rows.row}.{ORIGIN}"
    made = columns.add(f"__made_{sink.name}", rows.mapped(struct_of(parts)))
    row = made.row
    origin = origin_parts(row) if ORIGIN in parts else []
    id_header = headers_sql(
        {ID_HEADER: identity(pipeline, sink.name, [*origin, f"hex(xxhash64({row}.key, {row}.value))"])}
    )
    record = {
        "topic": literal(target.topic),
        "key": f"{row}.key",
        "value": f"{row}.value",
        "headers": f"concat({id_header}, {row}.own)" if own else id_header,
    }
    return columns.add(f"__records_{sink.name}", made.mapped(struct_of(record)))


def origin_parts(row: str) -> list[str]:
    return [f"cast({row}.{ORIGIN}.{name} as string)" for name in ("topic", "partition", "offset")]


def identity(pipeline: str, place: str, parts: list[str]) -> str:
    return f"concat_ws(':', {', '.join([literal(f'{pipeline}/{place}'), *parts])})"


def headers_sql(headers: dict[str, str]) -> str:
    if not headers:
        return NO_HEADERS
    made = (
        struct_of({"key": literal(name), "value": f"cast(cast({value} as string) as binary)"})
        for name, value in headers.items()
    )
    return f"array({', '.join(made)})"


def as_bytes(columns: RowColumns, rows: Rows, expression: str) -> str:
    """Bytes as they are, anything else as its text."""
    is_binary = isinstance(columns.type_of(rows, expression), T.BinaryType)
    return expression if is_binary else f"cast(cast({expression} as string) as binary)"
