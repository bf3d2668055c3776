"""All that a pipeline writes as one array of records per record read, for the realtime engine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - its usual name
from pyspark.sql import types as T  # noqa: N812 - its usual name

from odradek.pipelines.definition.model import TopicTarget
from odradek.pipelines.definition.vocabulary import Encoding, Otherwise
from odradek.pipelines.spark.dead_letters import (
    ID_HEADER,
    NO_HEADERS,
    PIPELINE_HEADER,
    REASON_HEADER,
    SOURCE_HEADER,
    STEP_HEADER,
    TOPIC_HEADER,
)
from odradek.pipelines.spark.engines.row_arrays import ITEM, ROW, NotLiftable, RowArrays, column_of, literal, struct_of
from odradek.pipelines.spark.hidden_columns import ORIGIN, REJECTED, quoted, visible_names
from odradek.pipelines.spark.records import unfiltered_rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame

    from odradek.pipelines.definition.graph import Graph
    from odradek.pipelines.definition.model import Expectation, Pipeline, Sink, Step
    from odradek.pipelines.spark.compiling import Tables

PLACE = [f"cast({ITEM}.origin.{name} as string)" for name in ("topic", "partition", "offset")]
JSON_OPTIONS = "map('ignoreNullFields', 'false')"


def exploded_records(pipeline: Pipeline, graph: Graph, tables: Tables) -> DataFrame:
    """One pass over the one stream; NotLiftable where the graph has more than plain SELECTs."""
    streams = [each for each in pipeline.sources if each.is_stream]
    if len(streams) != 1 or streams[0].watermark is not None:
        raise NotLiftable("sources")
    source = streams[0]
    frame = unfiltered_rows(tables.decoded(source.name), source)
    for each in source.columns:
        frame = frame.withColumn(each.name, F.expr(each.expression))
    names = [name for name in frame.columns if name != REJECTED]
    rows = RowArrays(frame, names, source.name, f"{REJECTED} is null")
    written: list[str] = []
    topic = pipeline.dead_letters
    if topic is not None:
        refused = struct_of({"origin": ORIGIN, "reason": REJECTED})
        letters = f"filter(array({refused}), {ITEM} -> {ITEM}.reason is not null)"
        written.append(add_letters(rows, pipeline, source.name, letters, topic))
    steps = {each.name: each for each in pipeline.steps}
    for name in graph.order:
        if name in steps:
            rows.add_step(steps[name])
            written += judge(rows, pipeline, steps[name])
    written += [add_records(rows, pipeline, each, each.target) for each in pipeline.sinks if is_topic_sink(each.target)]
    everything = f"explode(concat({', '.join(quoted(column_of(name)) for name in written)}))"
    return rows.frame.select(F.expr(everything).alias("it")).select("it.*")


def is_topic_sink(target: object) -> bool:
    if not isinstance(target, TopicTarget):
        raise NotLiftable("sinks")
    return True


def judge(rows: RowArrays, pipeline: Pipeline, step: Step) -> list[str]:
    """Leaves out the rows that an expectation refuses; the names of the dead letters that it makes."""
    if not step.expectations:
        return []
    scope = rows.scope(step.name)
    column = quoted(column_of(step.name))
    checks = {each.name: f"coalesce({scope.text(each.check)}, false)" for each in step.expectations}
    written = []
    quarantining = [each for each in step.expectations if each.otherwise is Otherwise.QUARANTINE]
    if quarantining and pipeline.dead_letters is not None:
        bad = f"filter({column}, {ROW} -> not ({all_of(checks[each.name] for each in quarantining)}))"
        refused = struct_of({"origin": f"{ROW}.{ORIGIN}", "reason": reason_of(quarantining, checks)})
        letters = f"transform({bad}, {ROW} -> {refused})"
        written.append(add_letters(rows, pipeline, step.name, letters, pipeline.dead_letters))
    refusing = [checks[each.name] for each in step.expectations if each.otherwise is not Otherwise.WARN]
    failing = [each for each in step.expectations if each.otherwise is Otherwise.FAIL]
    for each in failing:
        message = f"step '{step.name}': a row does not meet '{each.name}', which stops the pipeline"
        refusing.append(f"if({checks[each.name]}, true, raise_error({literal(message)}) is null)")
    if refusing:
        rows.add(step.name, f"filter({column}, {ROW} -> {all_of(refusing)})")
    return written


def all_of(conditions: object) -> str:
    return " and ".join(conditions)  # type: ignore[arg-type]


def reason_of(expectations: Sequence[Expectation], checks: dict[str, str]) -> str:
    cases = " ".join(
        f"when not {checks[each.name]} then {literal(f'{each.name}: not true that {each.check}')}"
        for each in expectations
    )
    return f"case {cases} end"


def add_letters(rows: RowArrays, pipeline: Pipeline, place: str, letters: str, topic: str) -> str:
    """Dead letters of an array of origins and reasons."""
    origin = f"{ITEM}.origin"
    headers = {
        REASON_HEADER: f"{ITEM}.reason",
        PIPELINE_HEADER: literal(pipeline.name),
        STEP_HEADER: literal(place),
        TOPIC_HEADER: f"{origin}.topic",
        SOURCE_HEADER: f"concat_ws(':', {PLACE[1]}, {PLACE[2]})",
        ID_HEADER: f"concat_ws(':', {literal(f'{pipeline.name}/{place}')}, {', '.join(PLACE)})",
    }
    own = f"coalesce({origin}.headers, {NO_HEADERS})"
    record = {
        "topic": literal(topic),
        "key": f"{origin}.key",
        "value": f"{origin}.value",
        "headers": f"concat({headers_sql(headers)}, {own})",
    }
    name = f"dead:{place}"
    rows.add(name, f"transform({letters}, {ITEM} -> {struct_of(record)})")
    return name


def add_records(rows: RowArrays, pipeline: Pipeline, sink: Sink, target: object) -> str:
    """The records of a topic sink."""
    assert isinstance(target, TopicTarget)
    scope, column = rows.scope(sink.input), quoted(column_of(sink.input))
    key = "cast(null as binary)" if target.key is None else as_bytes(rows, column, scope.text(target.key))
    if target.encoding is Encoding.JSON:
        names = target.value or visible_names(rows.elements(sink.input).names)
        fields = struct_of({name: scope.text(quoted(name)) for name in names})
        value = f"cast(to_json({fields}, {JSON_OPTIONS}) as binary)"
    else:
        value = as_bytes(rows, column, scope.text(target.value[0]))
    own = {each.name: scope.text(each.expression) for each in target.headers}
    made = struct_of({"origin": f"{ROW}.{ORIGIN}", "key": key, "value": value, "own": headers_sql(own)})
    identity = f"hex(xxhash64({ITEM}.key, {ITEM}.value))"
    place = literal(f"{pipeline.name}/{sink.name}")
    headers = {ID_HEADER: f"concat_ws(':', {place}, {', '.join(PLACE)}, {identity})"}
    record = {
        "topic": literal(target.topic),
        "key": f"{ITEM}.key",
        "value": f"{ITEM}.value",
        "headers": f"concat({headers_sql(headers)}, {ITEM}.own)",
    }
    name = f"sink:{sink.name}"
    rows.add(name, f"transform(transform({column}, {ROW} -> {made}), {ITEM} -> {struct_of(record)})")
    return name


def headers_sql(headers: dict[str, str]) -> str:
    if not headers:
        return NO_HEADERS
    made = (
        struct_of({"key": literal(name), "value": f"cast(cast({value} as string) as binary)"})
        for name, value in headers.items()
    )
    return f"array({', '.join(made)})"


def as_bytes(rows: RowArrays, column: str, expression: str) -> str:
    """Bytes as they are, anything else as its text."""
    kind = rows.frame.select(F.expr(f"transform({column}, {ROW} -> {expression})").alias("it")).schema["it"].dataType
    is_binary = isinstance(kind, T.ArrayType) and isinstance(kind.elementType, T.BinaryType)
    return expression if is_binary else f"cast(cast({expression} as string) as binary)"
