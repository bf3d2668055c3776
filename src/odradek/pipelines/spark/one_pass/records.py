"""Output records of topics, as SQL expressions over the rows that they are derived from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import types as T  # noqa: N812 - its usual name

from odradek.pipelines.definition.vocabulary import Encoding
from odradek.pipelines.letters.letter import (
    ID_HEADER,
    PIPELINE_HEADER,
    REASON_HEADER,
    SOURCE_HEADER,
    STEP_HEADER,
    TOPIC_HEADER,
)
from odradek.pipelines.spark.dead_letters import NO_HEADERS
from odradek.pipelines.spark.hidden_columns import REJECTED, visible_names
from odradek.pipelines.spark.one_pass.row_columns import PLACE_FIELDS, Rows, literal, struct_of, text_of
from odradek.pipelines.spark.one_pass.selecting import Scope

if TYPE_CHECKING:
    from collections.abc import Iterable

    from odradek.pipelines.definition.model import Sink, TopicTarget
    from odradek.pipelines.spark.one_pass.row_columns import RowColumns

JSON_OPTIONS = "map('ignoreNullFields', 'false')"


def dead_letters_of(columns: RowColumns, pipeline: str, place: str, refused: Rows, topic: str) -> str:
    """The dead letters of rejected rows, which have a reason in addition to their fields."""
    headers = {
        REASON_HEADER: text_of(refused.path(REJECTED)),
        PIPELINE_HEADER: literal(pipeline),
        STEP_HEADER: literal(place),
    }
    if columns.has_origin:
        key, value = columns.origin("key"), columns.origin("value")
        own = f"coalesce({columns.origin('headers')}, {NO_HEADERS})"
        headers[TOPIC_HEADER] = columns.origin("topic")
        headers[SOURCE_HEADER] = f"concat_ws(':', {columns.origin('partition')}, {columns.origin('offset')})"
        headers[ID_HEADER] = identity(pipeline, place, origin_parts(columns))
    else:
        whole = f"to_json({refused.struct(visible_names(refused.fields, shows_records=refused.shows_records))})"
        refused = with_fields(columns, place, refused, {REJECTED: headers[REASON_HEADER], "json": whole})
        headers[REASON_HEADER] = text_of(refused.path(REJECTED))
        json = text_of(refused.path("json"))
        key, value, own = "cast(null as binary)", f"cast({json} as binary)", NO_HEADERS
        headers[ID_HEADER] = identity(pipeline, place, [f"hex(xxhash64({json}))"])
    record = {
        "topic": literal(topic),
        "key": key,
        "value": value,
        "headers": f"concat({headers_sql(headers.items())}, {own})",
    }
    return refused.mapped(struct_of(record))


def encoded(columns: RowColumns, sink: Sink, target: TopicTarget, rows: Rows) -> Rows:
    """The rows of a topic sink with key, value and headers in place of their fields."""
    scope = Scope("", rows)
    key = "cast(null as binary)" if target.key is None else as_bytes(columns, rows, scope.text(target.key))
    if target.encoding is Encoding.JSON:
        fields = rows.struct(target.value or visible_names(rows.fields, shows_records=rows.shows_records))
        value = f"cast(to_json({fields}, {JSON_OPTIONS}) as binary)"
    else:
        value = as_bytes(columns, rows, scope.text(target.value[0]))
    if target.deletes is not None:
        value = f"if(coalesce({scope.text(target.deletes)}, false), null, {value})"
    headers = {header_field(each.name): as_text(scope.text(each.expression)) for each in target.headers}
    return with_fields(columns, sink.name, rows, {"key": key, "value": value, **headers})


def records_of(columns: RowColumns, pipeline: str, sink: Sink, target: TopicTarget, rows: Rows) -> str:
    """The records of a topic sink, from encoded rows."""
    key, value = text_of(rows.path("key")), text_of(rows.path("value"))
    parts = [*(origin_parts(columns) if columns.has_origin else ()), f"hex(xxhash64({key}, {value}))"]
    headers = [(ID_HEADER, identity(pipeline, sink.name, parts))]
    headers += [(each.name, text_of(rows.path(header_field(each.name)))) for each in target.headers]
    record = {"topic": literal(target.topic), "key": key, "value": value, "headers": headers_sql(headers)}
    return rows.mapped(struct_of(record))


def header_field(name: str) -> str:
    return f"header_{name}"


def with_fields(columns: RowColumns, name: str, rows: Rows, fields: dict[str, str]) -> Rows:
    """The rows with these fields in place of their own, each computed once."""
    if rows.is_many:
        return Rows.several(columns.add(f"__made_{name}", rows.mapped(struct_of(fields))), fields)
    made = {each: (columns.add(f"__{each}_{name}", rows.mapped(value)),) for each, value in fields.items()}
    return Rows(made, rows.condition)


def origin_parts(columns: RowColumns) -> list[str]:
    return [as_text(columns.origin(name)) for name in PLACE_FIELDS]


def identity(pipeline: str, place: str, parts: list[str]) -> str:
    return f"concat_ws(':', {', '.join([literal(f'{pipeline}/{place}'), *parts])})"


def headers_sql(headers: Iterable[tuple[str, str]]) -> str:
    made = (struct_of({"key": literal(name), "value": f"cast({as_text(value)} as binary)"}) for name, value in headers)
    return f"array({', '.join(made)})"


def as_text(expression: str) -> str:
    return f"cast({expression} as string)"


def as_bytes(columns: RowColumns, rows: Rows, expression: str) -> str:
    """Bytes unchanged, other types as text."""
    is_binary = isinstance(columns.type_of(rows, expression), T.BinaryType)
    return expression if is_binary else f"cast({as_text(expression)} as binary)"
