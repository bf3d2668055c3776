"""Rules of what a pipeline reads and writes: the realtime engine, and two ends of one table or folder."""

from __future__ import annotations

import posixpath
from pathlib import Path as FilePath
from typing import TYPE_CHECKING

from odradek.pipelines.definition.model import (
    FilesTarget,
    LakehouseTarget,
    Source,
    TableTarget,
    TopicOrigin,
    TopicTarget,
    place_of,
)
from odradek.pipelines.definition.operations import Join, PythonFunction
from odradek.pipelines.definition.vocabulary import Encoding, Engine, FileFormat, LakehouseFormat
from odradek.pipelines.planning.plan import EndMode, RowSql, UnionSql
from odradek.pipelines.planning.verdicts import Code, Refusal
from odradek.pipelines.planning.written import calls_of_python

if TYPE_CHECKING:
    from collections.abc import Iterator

    from odradek.pipelines.definition.model import Pipeline
    from odradek.pipelines.definition.places import Place
    from odradek.pipelines.planning.plan import End, Plan, Table

STANDARD = "use engine: standard"


def realtime(plan: Plan) -> Iterator[Refusal]:
    """The realtime engine runs row-by-row SQL from one topic into topics."""
    if plan.pipeline.engine is not Engine.REALTIME:
        return
    python = calls_of_python(plan)
    used = {name for end in plan.ends for name in plan.upstream(end.input) if plan.is_stream(name)}
    first = next((each.name for each in plan.streams if each.name in used), None)
    for table in map(plan.table, sorted(used)):
        reason = _beyond_realtime(table)
        if table.described in python:
            reason = f"it calls the Python function {python[table.described]}"
        if isinstance(table.made_by, Source) and table.name != first:
            reason = "it is a second stream"
        if reason is not None:
            message = f"the realtime engine does not run {table.described}: {reason}"
            yield Refusal(Code.NOT_IN_REALTIME, table, table.place(), message, STANDARD)
    for end in plan.ends:
        if not isinstance(end.target, TopicTarget):
            message = f"the realtime engine does not run {end.described}: it is not a topic"
            yield Refusal(Code.NOT_IN_REALTIME, end, end.place, message, STANDARD)
        elif end.target.bootstrap_servers or end.target.kafka or end.described in python:
            reason = (
                "it calls a Python function" if end.described in python else "it has brokers or settings of its own"
            )
            message = f"the realtime engine does not run {end.described}: {reason}"
            yield Refusal(Code.NOT_IN_REALTIME, end, end.place, message, STANDARD)


def _beyond_realtime(table: Table) -> str | None:
    """What of a table the realtime engine does not run."""
    made = table.made_by
    if isinstance(made, Source):
        if not isinstance(made.origin, TopicOrigin):
            return "it is no topic"
        if made.format.encoding is Encoding.AVRO:
            return "it has Avro, which is decoded in Python"
        has_limit = made.origin.max_records_per_batch is not None
        return "it has max_records_per_batch, and records have no batches" if has_limit else None
    if table.path.state:
        return "it keeps state" if table.name in table.path.state else None
    if isinstance(made, UnionSql):
        return "it has UNION ALL"
    if isinstance(made, PythonFunction):
        return "it runs Python"
    if isinstance(made, Join) or (isinstance(made, RowSql) and made.shape.tables):
        return "it has a join or a subquery"
    if isinstance(made, RowSql) and made.query.tree.args.get("hint"):
        return "it has a hint"
    is_plain = not isinstance(made, RowSql) or made.shape.is_plain
    return None if is_plain else "it has a generator beside one explode, posexplode or stack of SELECT or LATERAL VIEW"


def targets(plan: Plan) -> Iterator[Refusal]:
    """Two ends do not replace rows of one table, or write one folder; a topic is not read by what writes it."""
    first: dict[tuple[str, ...], End] = {}
    for end in plan.ends:
        where = stored_in(end, plan.pipeline)
        before = end if where is None else first.setdefault(where, end)
        is_shared = before is not end and plan.pipeline.engine is not Engine.BATCH
        if is_shared and (isinstance(end.target, FilesTarget) or {end.mode, before.mode} != {EndMode.APPEND}):
            writes = f"{end.described} writes the table or folder of {before.described}"
            message = f"{writes}, and rows of one would replace those of the other"
            example = "use another one, or unite the rows by UNION ALL in a step"
            yield Refusal(Code.SHARED_TARGET, end, _place(end), message, example)
        target = end.target
        if isinstance(target, TopicTarget) and target.bootstrap_servers is None:
            yield from _circles(plan, end, target)


def _place(end: End) -> Place:
    keys: tuple[str, ...] = {FilesTarget: ("files", "path"), LakehouseTarget: ("lakehouse",)}.get(
        type(end.target), ("table",)
    )
    return place_of(end, *keys)


def _circles(plan: Plan, end: End, target: TopicTarget) -> Iterator[Refusal]:
    for name in plan.upstream(end.input):
        made = plan.table(name).made_by
        origin = made.origin if isinstance(made, Source) and made.is_stream else None
        if isinstance(origin, TopicOrigin) and origin.bootstrap_servers is None and target.topic in origin.topics:
            message = f"{end.described} writes the topic that source '{name}' before it reads"
            hint = "records may circulate endlessly; write to another topic"
            yield Refusal(None, end, place_of(end, "topic"), message, hint)


def stored_in(end: End, pipeline: Pipeline) -> tuple[str, ...] | None:
    """What two ends share if they write one table or one folder."""
    target = end.target
    if isinstance(target, FilesTarget):
        return FileFormat.__name__, _folder(target.path, pipeline)
    if isinstance(target, TableTarget):
        return _database(target.url, pipeline), target.table.lower()
    if not isinstance(target, LakehouseTarget):
        return None
    if target.path is not None:
        return target.format, _folder(target.path, pipeline)
    is_delta = target.format is LakehouseFormat.DELTA  # catalogs of Iceberg may distinguish upper and lower case
    return target.format, target.name.lower() if is_delta else target.name


def _folder(path: str, pipeline: Pipeline) -> str:
    """The folder that a path or URL names, the same for all spellings of it."""
    scheme, separator, rest = path.rpartition("://")
    if separator and scheme.lower() != "file":
        return f"{scheme}{separator}{posixpath.normpath(rest)}"
    return posixpath.normpath(str(FilePath(pipeline.directory, rest).absolute()))


def _database(url: str | None, pipeline: Pipeline) -> str:
    """The database of a URL, the same for all spellings of a driver and of a file of SQLite."""
    kind, _, rest = (url or pipeline.warehouse or f"sqlite:///{pipeline.name}.db").partition("://")
    kind = kind.partition("+")[0]
    if kind == "sqlite":
        return _folder(rest.partition("?")[0].removeprefix("/"), pipeline)
    return f"{'postgresql' if kind == 'postgres' else kind}://{rest}"
