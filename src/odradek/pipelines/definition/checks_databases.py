"""Checks database URLs: SQLAlchemy URLs for tables and views, JDBC URLs for sources."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.pipelines.definition.checks_columns import is_incomparable
from odradek.pipelines.definition.column_types import Decimal, Primitive, Struct, types_in
from odradek.pipelines.definition.columns import lookup
from odradek.pipelines.definition.model import (
    JdbcOrigin,
    LakehouseTarget,
    LatestRows,
    RunningAggregate,
    Sink,
    TableTarget,
    place_of,
)
from odradek.pipelines.definition.nearest import nearest

if TYPE_CHECKING:
    from collections.abc import Mapping

    from odradek.pipelines.definition.column_types import ColumnType
    from odradek.pipelines.definition.model import Pipeline, View
    from odradek.pipelines.definition.places import Place, Problems
    from odradek.pipelines.definition.table_columns import Columns

KINDS = ("sqlite", "postgresql", "postgres")
SQLITE_DIGITS = 15  # of a decimal, which SQLite stores as a floating-point number
TIMES = (Primitive("TIMESTAMP"), Primitive("TIMESTAMP_NTZ"))
FORMS = "sqlite:///file.db, or postgresql://user:password@host/name"


def check_databases(pipeline: Pipeline, known: Mapping[str, Columns | None], problems: Problems) -> None:
    if pipeline.warehouse is not None:
        check_url(pipeline.warehouse, "the warehouse", pipeline.place, problems)
    for sink in pipeline.sinks:
        if isinstance(sink.target, TableTarget) and sink.target.url is not None:
            check_url(sink.target.url, f"url of sink '{sink.name}'", place_of(sink, "url"), problems)
    for view in pipeline.views:
        if view.url is not None:
            check_url(view.url, f"url of view '{view.name}'", place_of(view, "url"), problems)
    ends: list[Sink | View] = [*pipeline.sinks, *pipeline.views]
    for end in ends:
        columns = lookup(known, end.input)
        if columns is not None and database_kind(end, pipeline) == "sqlite":
            check_decimals(end, columns, problems)
        if columns is not None:
            check_nested_times(end, columns, problems)
            check_comparable(end, columns, problems)
    for source in pipeline.sources:
        if isinstance(source.origin, JdbcOrigin) and not source.origin.url.startswith("jdbc:"):
            kind, separator, _ = source.origin.url.partition("://")  # the rest may have a password
            start = f": it starts with {kind}://" if separator else ""
            problems.error(
                place_of(source, "jdbc", "url"),
                f"url of source '{source.name}' is not a JDBC URL{start}",
                "write jdbc:postgresql://host/name, jdbc:sqlite:file.db, or another URL that starts with jdbc:",
            )


def database_kind(end: Sink | View, pipeline: Pipeline) -> str:
    """The kind of database of a table or view, as its URL names it."""
    own = end.target.url if isinstance(end, Sink) and isinstance(end.target, TableTarget) else getattr(end, "url", None)
    return (own or pipeline.warehouse or "sqlite:").partition(":")[0].partition("+")[0]


def check_decimals(end: Sink | View, columns: Columns, problems: Problems) -> None:
    """Reports decimals that decide which rows SQLite keeps, and have more digits than its numbers: those of a key would
    replace the rows of others."""
    for path, name in compared_columns(end):
        kind = columns.type_of(name)
        if isinstance(kind, Decimal) and kind.precision > SQLITE_DIGITS:
            report = problems.error if path[-1] in {"key", "by"} else problems.warning
            report(
                place_of(end, *path, name),
                f"'{end.name}' compares {name} of type {kind.ddl} in SQLite, whose decimals have {SQLITE_DIGITS} "
                "digits: it takes values that differ in others for equal",
                "cast it to BIGINT, or a key to STRING, in a step before, or use PostgreSQL",
            )


def check_comparable(end: Sink | View, columns: Columns, problems: Problems) -> None:
    """Refuses keys that Spark cannot compare, or, of maps, whose order of entries is another in JSON."""
    for path, name in compared_columns(end):
        kind = columns.type_of(name)
        if kind is not None and is_incomparable(kind):
            problems.error(
                place_of(end, *path, name),
                f"'{end.name}' tells rows apart by {name} of type {kind.ddl}, which has no order and no one notation",
                "use an element of it, or array_sort(map_entries(…)), as a column of a step before",
            )


def check_nested_times(end: Sink | View, columns: Columns, problems: Problems) -> None:
    """Warns of keys that are stored as JSON, which has the milliseconds of timestamps only."""
    for path, name in compared_columns(end):
        kind = columns.type_of(name)
        if (
            kind is not None
            and kind not in TIMES
            and not is_window(kind)
            and any(each in TIMES for each in types_in(kind))
        ):
            problems.warning(
                place_of(end, *path, name),
                f"'{end.name}' stores {name} of type {kind.ddl} as JSON, with the milliseconds of its timestamps: rows "
                "that differ in microseconds would replace each other",
                "use its fields as the key, selected in a step before",
            )


def is_window(kind: ColumnType) -> bool:
    """Whether this is the type of `window(…)`, whose ends have no microseconds."""
    return isinstance(kind, Struct) and [each.name.lower() for each in kind.fields] == ["start", "end"]


def compared_columns(end: Sink | View) -> list[tuple[tuple[str, ...], str]]:
    """The columns by which a table or view of a database tells rows from each other, each with the path of its key."""
    if isinstance(end, Sink) and isinstance(end.target, LakehouseTarget):
        return []
    changes = end.changes
    if changes is not None:
        named = [(("changes", "key"), name) for name in changes.key]
        return [*named, (("changes", "sequence"), changes.sequence)]
    kept = end.target if isinstance(end, Sink) else end.content
    if isinstance(kept, RunningAggregate):
        return [(("by",), name) for name in kept.by]
    if not isinstance(kept, TableTarget | LatestRows):
        return []
    key = [(("key",), name) for name in kept.key]
    return [*key, *((("order_by",), name) for name in kept.order_by)]


def check_url(url: str, what: str, place: Place, problems: Problems) -> None:
    kind = url.partition("://")[0].partition("+")[0]
    if url.startswith("jdbc:"):
        problems.error(place, f"{what} is a JDBC URL", f"tables and views take SQLAlchemy URLs: {FORMS}")
    elif "://" not in url:
        problems.error(place, f"{what} '{url}' is not a URL", f"write {FORMS}")
    elif kind not in KINDS:
        meant = nearest(kind, KINDS)
        hint = f"write {FORMS}; for another database use Spark's format: spark: {{format: jdbc, options: …}}"
        message = f"{what} is of the kind '{kind}', and tables and views are in SQLite or PostgreSQL"
        problems.error(place, message, hint if meant is None else f"did you mean '{meant}'?")
