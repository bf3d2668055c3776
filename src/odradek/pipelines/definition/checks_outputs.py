"""Checks that sinks and views do not write the same files or the same rows of a table."""

from __future__ import annotations

import posixpath
from pathlib import Path
from typing import TYPE_CHECKING, TypeGuard

from odradek.pipelines.definition.column_types import Array, Map, Primitive, Struct
from odradek.pipelines.definition.columns import RECORD_COLUMN_NAMES, lookup
from odradek.pipelines.definition.model import FilesTarget, LakehouseTarget, LatestRows, Sink, TableTarget, place_of
from odradek.pipelines.definition.vocabulary import Engine, FileFormat, LakehouseFormat, SinkMode

if TYPE_CHECKING:
    from collections.abc import Mapping

    from odradek.pipelines.definition.column_types import ColumnType
    from odradek.pipelines.definition.model import Pipeline, View
    from odradek.pipelines.definition.places import Problems
    from odradek.pipelines.definition.table_columns import Columns

BINARY = Primitive("BINARY")


def check_outputs(pipeline: Pipeline, known: Mapping[str, Columns | None], problems: Problems) -> None:
    check_file_columns(pipeline, known, problems)
    if pipeline.engine is not Engine.BATCH:  # which writes them one after the other
        check_files(pipeline, problems)
        check_tables(pipeline, problems)


def check_file_columns(pipeline: Pipeline, known: Mapping[str, Columns | None], problems: Problems) -> None:
    """Refuses columns that Spark does not write to files of CSV, or by which it does not divide files."""
    for sink in pipeline.sinks:
        columns = lookup(known, sink.input)
        if columns is None or not isinstance(sink.target, FilesTarget):
            continue
        is_whole = RECORD_COLUMN_NAMES.issubset(columns.names)  # the columns of records are then left out
        for name, kind in columns.types.items():
            if name in RECORD_COLUMN_NAMES and is_whole:
                continue
            if sink.target.format is FileFormat.CSV and is_nested(kind):
                problems.error(
                    place_of(sink, "files", "format"),
                    f"sink '{sink.name}' writes the column '{name}' of type {kind.ddl} as CSV, which Spark refuses",
                    f"use format: json, or select to_json({name}) as {name} in a step before",
                )
        for name in sink.target.partition_by:
            kind = columns.type_of(name)
            if is_nested(kind) or (kind is not None and kind == BINARY):
                problems.error(
                    place_of(sink, "files", "partition_by", name),
                    f"sink '{sink.name}' divides files by '{name}' of type {kind.ddl}, which Spark refuses",
                    "use a column with a number, a date or text",
                )


def is_nested(kind: ColumnType | None) -> TypeGuard[ColumnType]:
    return isinstance(kind, Struct | Array | Map) or kind == Primitive("VARIANT")


def check_files(pipeline: Pipeline, problems: Problems) -> None:
    """Refuses two sinks with one folder. Spark recognizes a batch by its number, in a log of the folder: the batch of
    one sink would count as written because that of the other is."""
    first: dict[str, Sink] = {}
    for sink in pipeline.sinks:
        if not isinstance(sink.target, FilesTarget):
            continue
        before = first.setdefault(folder_of(sink.target.path, pipeline), sink)
        if before is not sink:
            problems.error(
                place_of(sink, "files", "path"),
                f"sink '{sink.name}' writes the folder of sink '{before.name}': Spark would fail, or take the batches "
                "of one for those of the other, and skip them",
                "use another path, or unite the rows with UNION ALL in a step",
            )


def folder_of(path: str, pipeline: Pipeline) -> str:
    """The folder that a path or URL names, the same for all spellings of it."""
    scheme, separator, rest = path.rpartition("://")
    if separator and scheme.lower() != "file":
        return f"{scheme}{separator}{posixpath.normpath(rest)}"
    return posixpath.normpath(str(Path(pipeline.directory, rest).absolute()))


def check_tables(pipeline: Pipeline, problems: Problems) -> None:
    """Refuses two outputs that replace rows of one table, unless both do so in the same order: which row stays would
    depend on the batches."""
    first: dict[tuple[str, str], Sink | View] = {}
    ends: list[Sink | View] = [*pipeline.sinks, *pipeline.views]
    for end in ends:
        table = table_of(end, pipeline)
        if table is None:
            continue
        before = first.setdefault(table, end)
        is_ordered = order_of(end) is not None and order_of(end) == order_of(before)
        if before is not end and (replaces_rows(end) or replaces_rows(before)) and not is_ordered:
            problems.error(
                place_of(end, *table_path(end)),
                f"{described(end)} writes the table of {described(before)}, and rows of one would replace those of "
                "the other, depending on the batches",
                "use another table, or unite the rows with UNION ALL in a step",
            )


def table_of(end: Sink | View, pipeline: Pipeline) -> tuple[str, str] | None:
    """The database, or the format of a lakehouse table, and the table; its name, or its folder."""
    if not isinstance(end, Sink):
        return database_of(end.url, pipeline), end.name.lower()
    target = end.target
    if isinstance(target, TableTarget):
        return database_of(target.url, pipeline), target.table.lower()
    if not isinstance(target, LakehouseTarget):
        return None
    if target.path is not None:
        return target.format, folder_of(target.path, pipeline)
    is_delta = target.format is LakehouseFormat.DELTA  # catalogs of Iceberg may distinguish upper and lower case
    return target.format, target.name.lower() if is_delta else target.name


def database_of(url: str | None, pipeline: Pipeline) -> str:
    """The database of a URL, the same for all spellings of a driver and of a file of SQLite."""
    kind, _, rest = (url or pipeline.warehouse or f"sqlite:///{pipeline.name}.db").partition("://")
    kind = kind.partition("+")[0]
    if kind == "sqlite":
        return folder_of(rest.partition("?")[0].removeprefix("/"), pipeline)
    return f"{'postgresql' if kind == 'postgres' else kind}://{rest}"


def table_path(end: Sink | View) -> tuple[str, ...]:
    """The keys below which an output names its table."""
    if isinstance(end, Sink) and isinstance(end.target, LakehouseTarget):
        return "lakehouse", "table" if end.target.path is None else "path"
    return ("table",)


def replaces_rows(end: Sink | View) -> bool:
    return not isinstance(end, Sink) or end.mode is SinkMode.UPSERT or end.changes is not None


def order_of(end: Sink | View) -> object:
    """What decides which row of a key stays; None if the order of arrival does."""
    changes = end.changes
    if changes is not None:
        return changes.key, changes.sequence, changes.keeps_history
    kept = end.target if isinstance(end, Sink) else end.content
    if not isinstance(kept, TableTarget | LatestRows) or not kept.order_by:
        return None
    return kept.key, kept.order_by


def described(end: Sink | View) -> str:
    return f"{'sink' if isinstance(end, Sink) else 'view'} '{end.name}'"
