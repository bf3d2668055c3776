"""Checks of a definition that the rules of streams do not say: names, outputs, databases, catalogs, engines.

They need no SQL: what the plan has read of it comes as `Facts`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from odradek.conventions.dataclass import dataclass
from odradek.pipelines.definition import model
from odradek.pipelines.definition.column_types import Decimal, Primitive
from odradek.pipelines.definition.operations import Deduplication, KeyedState
from odradek.pipelines.definition.python_code import check_python
from odradek.pipelines.definition.spark_version import (
    LAKEHOUSE_HINT,
    REALTIME_HINT,
    lakehouse_refusal,
    realtime_refusal,
)
from odradek.pipelines.definition.vocabulary import Delivery, Engine, LakehouseFormat, Otherwise

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from odradek.pipelines.definition.column_types import ColumnType
    from odradek.pipelines.definition.places import Place, Problems

    Declaration = model.Source | model.Step | model.Sink | model.View

NAMES = "OD02"  # the code of problems with names
SQLITE_DIGITS = 15  # of a decimal, which SQLite stores as a floating-point number
OWN_JARS = ("spark.jars", "spark.jars.packages")
CATALOG = "spark.sql.catalog"
CATALOG_HINT = (
    f"write table: lake.schema.name, and spark: {{{CATALOG}.lake: org.apache.iceberg.spark.SparkCatalog, "
    f"{CATALOG}.lake.type: hadoop, {CATALOG}.lake.warehouse: FOLDER}}"
)
HISTORY = frozenset(("valid_from", "valid_to", "is_current"))
RECORD_NAMES = {each.name for each in model.RECORD_COLUMNS}
RESERVED = frozenset(
    """
    __decoded __element __index __input __is_lost __it __latest __letters __made __origin __parsed __passes __period
    __place __position __rank __read __rejected __row __unreadable __window __written
    """.split()  # noqa: SIM905 - a list would have a line for each name
)


@dataclass(frozen=True, slots=True)
class Facts:
    """What the plan knows: all names are in lower case."""

    used: frozenset[str]  # sources and steps that an output needs
    streams: frozenset[str]
    columns: Mapping[str, Mapping[str, ColumnType | None]]  # of sources and steps, where they are known

    def columns_of(self, name: str) -> Mapping[str, ColumnType | None]:
        return self.columns.get(name.lower(), {})

    def type_of(self, table: str, column: str) -> ColumnType | None:
        return next((kind for name, kind in self.columns_of(table).items() if name.lower() == column.lower()), None)


def check_definition(
    pipeline: model.Pipeline, facts: Facts, problems: Problems, broken: frozenset[str] = frozenset()
) -> None:
    """Reports every problem. `broken` are sources and steps that could not be parsed."""
    check_names(pipeline, facts, problems)
    check_python(pipeline, problems)
    check_urls(pipeline, problems)
    check_times(pipeline, facts, problems)
    for end in ends_of(pipeline):
        check_keys(pipeline, end, facts, problems)
        if set(facts.columns_of(end.input)) == RECORD_NAMES and not chooses_columns(end):
            message = f"{described(end)} reads '{end.input}', whose only columns are those of its records"
            query = f"select cast(_key as string) as id, _value as content from {end.input}"
            problems.error(model.place_of(end, "from"), message, f"name what is written in a step: {query}")
    for sink in pipeline.sinks:
        if isinstance(sink.target, model.LakehouseTarget):
            check_lakehouse(pipeline, sink, sink.target, problems)
    check_engine(pipeline, facts, problems, broken)
    check_unused(pipeline, facts, problems, broken)


def ends_of(pipeline: model.Pipeline) -> list[model.Sink | model.View]:
    return [*pipeline.sinks, *pipeline.views]


def tables_of(pipeline: model.Pipeline) -> list[model.Source | model.Step]:
    return [*pipeline.sources, *pipeline.steps]


def described(thing: Declaration) -> str:
    return f"{type(thing).__name__.lower()} '{thing.name}'"


def check_names(pipeline: model.Pipeline, facts: Facts, problems: Problems) -> None:
    def check_unique(things: Iterable[Declaration], why: str) -> None:
        first: dict[str, Place] = {}
        for each in things:
            before = first.setdefault(each.name.lower(), each.place)
            if before is not each.place:
                where = f"line {before.line}" if before.file == each.place.file else str(before)
                message = f"the name '{each.name}' is already used in {where}"
                problems.error(each.place, message, f"choose another: {why}", NAMES)

    check_unique(tables_of(pipeline), "sources and steps share one namespace, the tables of SQL")
    check_unique(pipeline.sinks, "checkpoints are named after sinks")
    check_unique(pipeline.views, "views are tables of a database")
    for thing in tables_of(pipeline):
        for name in facts.columns_of(thing.name):
            if name.lower() in RESERVED:
                problems.error(thing.place, f"'{thing.name}' has the column '{name}', which is internal", "rename it")


def check_urls(pipeline: model.Pipeline, problems: Problems) -> None:
    """Tables and views take URLs of SQLAlchemy, sources those of JDBC."""
    hint = "write sqlite:///file.db or postgresql://user:password@host/name; for other databases spark: {format: jdbc}"
    named = [(pipeline.warehouse, "the warehouse", pipeline.place)]
    named += [(url_of(each), f"url of {described(each)}", model.place_of(each, "url")) for each in ends_of(pipeline)]
    for url, what, place in named:
        if url is not None and re.match(r"(sqlite|postgres|postgresql)(\+\w+)?://", url) is None:
            problems.error(place, f"{what} is not a URL of SQLite or PostgreSQL{beginning(url)}", hint)
    for source in pipeline.sources:
        if isinstance(source.origin, model.JdbcOrigin) and not source.origin.url.startswith("jdbc:"):
            message = f"url of {described(source)} is not a JDBC URL{beginning(source.origin.url)}"
            hint = "write jdbc:postgresql://host/name, jdbc:sqlite:file.db, or another URL that starts with jdbc:"
            problems.error(model.place_of(source, "jdbc", "url"), message, hint)


def beginning(url: str) -> str:
    """How a URL starts; the rest may have a password."""
    kind, separator, _ = url.partition("://")
    return f": it starts with {kind}://" if separator else ""


def url_of(end: model.Sink | model.View) -> str | None:
    target = end.target if isinstance(end, model.Sink) else end
    return target.url if isinstance(target, model.TableTarget | model.View) else None


def check_times(pipeline: model.Pipeline, facts: Facts, problems: Problems) -> None:
    """Event time is a TIMESTAMP."""
    for thing in tables_of(pipeline):
        name = None if thing.watermark is None else thing.watermark.column
        kind = None if name is None else facts.type_of(thing.name, name)
        if kind is not None and kind != Primitive("TIMESTAMP"):
            message = f"the watermark of {described(thing)} is over '{name}' of type {kind.ddl}, which is no TIMESTAMP"
            function = "try_to_timestamp" if kind == Primitive("STRING") else "to_timestamp"
            hint = f"compute one in the source: columns: {{event_time: {function}({name})}}"
            problems.error(model.place_of(thing, "watermark", "column"), message, hint)


def check_keys(pipeline: model.Pipeline, end: model.Sink | model.View, facts: Facts, problems: Problems) -> None:
    """Columns by which a table of a database tells rows apart, and that it does not store exactly."""
    taken = sorted(HISTORY & {each.lower() for each in facts.columns_of(end.input)})
    if end.changes is not None and end.changes.keeps_history and taken:
        message = f"{described(end)} keeps a history, which adds the column {taken[0]}, and its rows have one"
        hint = "give the column another name in a step before"
        problems.error(model.place_of(end, "changes", "history"), message, hint)
    is_sqlite = (url_of(end) or pipeline.warehouse or "sqlite:").startswith("sqlite")
    for path, name in compared_columns(end):
        kind = facts.type_of(end.input, name)
        place = model.place_of(end, *path, name)
        if is_sqlite and isinstance(kind, Decimal) and kind.precision > SQLITE_DIGITS:
            report = problems.error if path[-1] in {"key", "by"} else problems.warning
            digits = f"whose decimals have {SQLITE_DIGITS} digits: it takes values that differ in others for equal"
            hint = "cast it to BIGINT, or a key to STRING, in a step before, or use PostgreSQL"
            report(place, f"'{end.name}' compares {name} of type {kind.ddl} in SQLite, {digits}", hint)


def compared_columns(end: model.Sink | model.View) -> list[tuple[tuple[str, ...], str]]:
    """The columns by which a table of a database tells rows from each other, each with the path of its key."""
    changes = end.changes
    if changes is not None:
        return [*((("changes", "key"), name) for name in changes.key), (("changes", "sequence"), changes.sequence)]
    kept = end.target if isinstance(end, model.Sink) else end.content
    if isinstance(kept, model.RunningAggregate):
        return [(("by",), name) for name in kept.by]
    if not isinstance(kept, model.TableTarget | model.LatestRows):
        return []
    return [*((("key",), name) for name in kept.key), *((("order_by",), name) for name in kept.order_by)]


def chooses_columns(end: model.Sink | model.View) -> bool:
    """Whether the end itself says what it writes; a console without columns is no failure."""
    if not isinstance(end, model.Sink):
        return isinstance(end.content, model.RunningAggregate)
    if isinstance(end.target, model.TopicTarget):
        return bool(end.target.value)
    return not isinstance(end.target, model.FilesTarget | model.TableTarget | model.LakehouseTarget)


def check_lakehouse(
    pipeline: model.Pipeline, sink: model.Sink, target: model.LakehouseTarget, problems: Problems
) -> None:
    """The library and the catalog of a lakehouse table."""
    refusal = lakehouse_refusal(target.format)
    if refusal is not None and not any(each in pipeline.spark for each in OWN_JARS):
        problems.error(model.place_of(sink, "lakehouse", "format"), f"{described(sink)}: {refusal}", LAKEHOUSE_HINT)
    if target.format is LakehouseFormat.ICEBERG and target.table is not None:
        catalog, dot, _ = target.table.partition(".")
        if not dot or f"{CATALOG}.{catalog}" not in pipeline.spark:
            missing = f"{described(sink)} names the Iceberg table '{target.table}' without its catalog"
            message = f"the catalog '{catalog}' of {described(sink)} is not declared" if dot else missing
            problems.error(model.place_of(sink, "lakehouse", "table"), message, CATALOG_HINT)


def check_engine(pipeline: model.Pipeline, facts: Facts, problems: Problems, broken: frozenset[str]) -> None:
    """What the engine cannot run, and sinks that cannot keep the guarantee of delivery."""
    if pipeline.engine is Engine.REALTIME and (refusal := realtime_refusal()):
        problems.error(pipeline.place, refusal, REALTIME_HINT)
    is_batch = pipeline.engine is Engine.BATCH
    if pipeline.sources and not broken and not is_batch and not any(each.is_stream for each in pipeline.sources):
        message = f"the {pipeline.engine} engine needs a stream, and no source is one"
        problems.error(pipeline.place, message, "set stream: true on a source of files, or use engine: batch")
    for source in pipeline.sources:
        is_file_stream = source.is_stream and isinstance(source.origin, model.FileOrigin)
        if not is_batch and is_file_stream and source.format.schema is None:
            message = f"{described(source)} is a stream of files without a schema"
            problems.error(source.place, message, "add schema: to the source")
    for step in pipeline.steps:
        check_step(pipeline, step, facts, problems)
    if pipeline.delivery is Delivery.EXACTLY_ONCE:
        check_exactly_once(pipeline, problems)


def check_step(pipeline: model.Pipeline, step: model.Step, facts: Facts, problems: Problems) -> None:
    """Timers that do not fire, ids that are kept for ever, and rows without a topic for dead letters."""
    operation, is_batch = step.operation, pipeline.engine is Engine.BATCH
    if is_batch and isinstance(operation, KeyedState) and operation.has_timers:
        message = f"the timers of {described(step)} do not fire in the batch engine, which ends after the last row"
        problems.warning(step.place, message, "use engine: standard")
    is_kept = isinstance(operation, Deduplication) and operation.within is None
    if is_kept and not is_batch and step.name.lower() in facts.streams:
        message = f"{described(step)} keeps every id in state without a limit"
        problems.warning(model.place_of(step, "deduplicate"), message, "add within: 10 minutes, or another duration")
    for each in step.expectations:
        if each.otherwise is Otherwise.QUARANTINE and pipeline.dead_letters is None:
            what = f"expectation '{each.name}' of {described(step)}"
            place = model.place_of(step, "expect", each.name, "otherwise")
            problems.error(place, f"{what} quarantines rows, and dead_letters is not set", "add dead_letters: TOPIC")


def check_exactly_once(pipeline: model.Pipeline, problems: Problems) -> None:
    if pipeline.engine is Engine.REALTIME:
        message = "the realtime engine cannot deliver exactly once: records are sent before their batch is committed"
        hint = "use delivery: at_least_once, which gives each record an id, or engine: standard"
        problems.error(pipeline.place, message, hint)
    for sink in pipeline.sinks:
        again = f"{described(sink)} may receive a batch again: exactly_once covers topics, files and tables"
        if isinstance(sink.target, model.SparkTarget):
            message = f"{again}, not the format '{sink.target.format}'"
            problems.warning(sink.place, message, "write to a topic, files or a table")
        elif isinstance(sink.target, model.PythonTarget):
            hint = "store batch.checkpoint and the number of each batch with its rows, and skip batches that are stored"
            problems.warning(sink.place, f"{again}, not a function", hint)


def check_unused(pipeline: model.Pipeline, facts: Facts, problems: Problems, broken: frozenset[str]) -> None:
    """Reports a definition that reads or writes nothing, and what no output needs. Other errors may be the reason why
    something looks unused."""
    if not pipeline.sources and not broken:
        problems.error(pipeline.place, "the pipeline has no sources", "add one: sources: {name: {topic: …}}")
    if problems.errors:
        return
    if not ends_of(pipeline):
        message = "the pipeline has neither sinks nor views, so it has no output"
        problems.error(pipeline.place, message, "add a sink or a view")
        return
    for each in tables_of(pipeline):
        if each.name.lower() not in facts.used:
            message = f"no sink and no view uses the {described(each)}, which is therefore not read"
            problems.warning(each.place, message, "remove it, or write its rows")
