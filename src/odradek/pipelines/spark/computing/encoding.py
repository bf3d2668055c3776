"""Records of topics and dead letters, as SQL over rows: the only module that knows their headers, ids and JSON."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - its usual name
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
from odradek.pipelines.spark.computing.row_errors import computed_rows
from odradek.pipelines.spark.computing.rows import Rows, struct_of, text_of
from odradek.pipelines.spark.computing.selecting import over_rows
from odradek.pipelines.spark.frames import PLACE_FIELDS, REJECTED, literal, quoted, visible_names
from odradek.pipelines.spark.writing.transactional_writer import SPLIT
from odradek.pipelines.sql.row_errors import expression_may_fail

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pyspark.sql import DataFrame

    from odradek.pipelines.definition.model import Pipeline, TopicTarget
    from odradek.pipelines.spark.computing.rows import Frame
    from odradek.pipelines.sql.columns import Columns

JSON_OPTIONS = "map('ignoreNullFields', 'false')"
NO_HEADERS = "cast(array() as array<struct<key: string, value: binary>>)"
NO_BYTES = "cast(null as binary)"
RECORD_FIELDS = ("topic", "key", "value", "headers")


@dataclass(frozen=True, slots=True)
class Encoded:
    """The records of rows, and the rows of which a record cannot be computed."""

    records: str  # a struct, or an array of structs
    rows: Rows
    refused: tuple[Rows, ...] = ()


def topic_record(
    frame: Frame, pipeline: Pipeline, end: str, target: TopicTarget, rows: Rows, types: Columns | None = None
) -> Encoded:
    """The records of an end; `types` has what is known of its input's columns. The id of a record is stable across
    replays: the original record, and which of its rows this is."""
    key = NO_BYTES if target.key is None else _as_bytes(frame, rows, over_rows(target.key, rows))
    if target.encoding is Encoding.JSON:
        value = f"cast({_json(rows, target.value, options=True)} as binary)"
    else:
        value = _as_bytes(frame, rows, over_rows(target.value[0], rows))
    if target.deletes is not None:
        value = f"if(coalesce({over_rows(target.deletes, rows)}, false), null, {value})"
    headers = {f"header_{each.name}": _as_text(over_rows(each.expression, rows)) for each in target.headers}
    written = [target.key, target.deletes, *(each.expression for each in target.headers)]
    written += target.value if target.encoding is not Encoding.JSON else ()
    fails = any(expression_may_fail(each, types) for each in written if each is not None)
    made, refused = _with_fields(frame, end, rows, {"key": key, "value": value, **headers}, fails=fails)

    key, value = text_of(made.path("key")), text_of(made.path("value"))
    place = f"{pipeline.name}/{end}"
    parts = [*_origin_parts(frame), f"hex(xxhash64({key}, {value}))"]
    named = {each.name: text_of(made.path(f"header_{each.name}")) for each in target.headers}
    record = {
        "topic": literal(target.topic),
        "key": key,
        "value": value,
        "headers": _headers([(ID_HEADER, _identity(place, parts)), *named.items()]),
    }
    return Encoded(made.mapped(struct_of(record)), made, refused)


def dead_letter(frame: Frame, pipeline: Pipeline, place: str, refused: Rows) -> Encoded:
    """The dead letters of rows with a reason: the original bytes, or the row as JSON if it has no record of its own."""
    headers = {
        REASON_HEADER: text_of(refused.path(REJECTED)),
        PIPELINE_HEADER: literal(pipeline.name),
        STEP_HEADER: literal(place),
    }
    identity = f"{pipeline.name}/{place}"
    if frame.has_origin:
        key, value = frame.origin("key"), frame.origin("value")
        own = f"coalesce({frame.origin('headers')}, {NO_HEADERS})"
        headers[TOPIC_HEADER] = frame.origin("topic")
        headers[SOURCE_HEADER] = f"concat_ws(':', {frame.origin('partition')}, {frame.origin('offset')})"
        headers[ID_HEADER] = _identity(identity, _origin_parts(frame))
    else:
        fields = {REJECTED: headers[REASON_HEADER], "json": _json(refused, (), options=False)}
        refused, _ = _with_fields(frame, place, refused, fields, fails=False)
        headers[REASON_HEADER] = text_of(refused.path(REJECTED))
        json = text_of(refused.path("json"))
        key, value, own = NO_BYTES, f"cast({json} as binary)", NO_HEADERS
        headers[ID_HEADER] = _identity(identity, [f"hex(xxhash64({json}))"])
    record = {
        "topic": literal(pipeline.dead_letters or ""),
        "key": key,
        "value": value,
        "headers": f"concat({_headers(headers.items())}, {own})",
    }
    return Encoded(refused.mapped(struct_of(record)), refused)


def dead_letters(frame: Frame, pipeline: Pipeline, refused: Sequence[tuple[str, Rows]]) -> list[Encoded]:
    """The dead letters of refused rows, with the places that refuse them. A record has one letter at most of a place
    whose rows are single: all of them are one expression, because each letter is a tenth of the generated code."""
    found = [(place, rows) for place, rows in refused if rows.is_many or not frame.has_origin]
    for place in dict.fromkeys(place for place, _ in refused if frame.has_origin):
        single = [rows for name, rows in refused if name == place and not rows.is_many]
        if single:
            reasons = [each.mapped(text_of(each.path(REJECTED))) for each in single]
            column = frame.add(f"__reason_{place}", f"coalesce({', '.join(reasons)})")
            found.append((place, Rows({REJECTED: (column,)}, f"{quoted(column)} is not null")))
    return [dead_letter(frame, pipeline, place, rows) for place, rows in found]


def together(encoded: Sequence[Encoded]) -> str:
    """All records of a row as one array; missing ones are null."""
    single = [each.records for each in encoded if not each.rows.is_many]
    arrays = [f"array({', '.join(single)})"] if single else []
    arrays += [f"coalesce({each.records}, array())" for each in encoded if each.rows.is_many]
    return arrays[0] if len(arrays) == 1 else f"concat({', '.join(arrays)})"


def records_of_column(frame: DataFrame, column: str) -> DataFrame:
    """The records in a column of arrays, with the split that writes them."""
    split = [SPLIT] if SPLIT in frame.columns else []
    each = frame.select(F.explode(quoted(column)).alias("__it"), *split).where("__it is not null")
    return each.select(*(F.col(f"__it.{name}") for name in RECORD_FIELDS), *split)


def _with_fields(
    frame: Frame, name: str, rows: Rows, fields: Mapping[str, str], *, fails: bool
) -> tuple[Rows, tuple[Rows, ...]]:
    """The rows with these fields in place of their own, each computed once, and the rows that cannot be computed."""
    if fails:
        made, refused = computed_rows(frame, name, rows, fields)
        return made, (refused,)
    if rows.is_many:
        return Rows.several(frame.add(f"__made_{name}", rows.mapped(struct_of(fields))), fields), ()
    columns = {each: (frame.add(f"__{each}_{name}", rows.mapped(value)),) for each, value in fields.items()}
    return Rows(columns, rows.condition), ()


def _json(rows: Rows, names: Iterable[str], *, options: bool) -> str:
    shown = list(names) or visible_names(rows.fields, shows_records=rows.shows_records)
    return f"to_json({rows.struct(shown)}{f', {JSON_OPTIONS}' if options else ''})"


def _origin_parts(frame: Frame) -> list[str]:
    return [_as_text(frame.origin(name)) for name in PLACE_FIELDS] if frame.has_origin else []


def _identity(place: str, parts: Iterable[str]) -> str:
    return f"concat_ws(':', {', '.join([literal(place), *parts])})"


def _headers(headers: Iterable[tuple[str, str]]) -> str:
    made = (struct_of({"key": literal(name), "value": f"cast({_as_text(value)} as binary)"}) for name, value in headers)
    return f"array({', '.join(made)})"


def _as_text(expression: str) -> str:
    return f"cast({expression} as string)"


def _as_bytes(frame: Frame, rows: Rows, expression: str) -> str:
    """Bytes unchanged, other types as text; a number that is cast to binary would be its bits."""
    is_binary = isinstance(frame.type_of(rows, expression), T.BinaryType)
    return expression if is_binary else f"cast({_as_text(expression)} as binary)"
