"""Rules of what a pipeline reads and writes: the realtime engine, and two ends of one table or folder."""

from __future__ import annotations

from posixpath import normpath
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
from odradek.pipelines.definition.vocabulary import Encoding, Engine, LakehouseFormat
from odradek.pipelines.planning.plan import End, EndMode, RowSql, Table, Unplanned
from odradek.pipelines.planning.verdicts import Code, Refusal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from odradek.pipelines.definition.model import Pipeline
    from odradek.pipelines.definition.places import Place
    from odradek.pipelines.planning.plan import Plan

PLAIN = "it is not plain SQL over each row, without state, joins, UNION ALL, subqueries, hints and further generators"


def realtime(plan: Plan) -> Iterator[Refusal]:
    """The realtime engine runs row-by-row SQL from one topic into topics."""
    if plan.pipeline.engine is not Engine.REALTIME:
        return
    used = {name for end in plan.ends for name in plan.upstream(end.input) if plan.is_stream(name)}
    first = next((each.name for each in plan.streams if each.name in used), None)
    subjects: list[Table | End] = [*map(plan.table, sorted(used)), *plan.ends]
    for subject in subjects:
        reason = _beyond_realtime(subject, first)
        if reason is not None:
            message = f"the realtime engine does not run {subject.described}: {reason}"
            place = subject.place() if isinstance(subject, Table) else subject.place
            yield Refusal(Code.NOT_IN_REALTIME, subject, place, message, "use engine: standard")


def _beyond_realtime(subject: Table | End, first: str | None) -> str | None:
    """Why the realtime engine does not run a table or an end; `first` is the stream that it reads."""
    if isinstance(subject, End):
        target = subject.target
        is_plain = isinstance(target, TopicTarget) and not target.bootstrap_servers and not target.kafka
        return None if is_plain else "it is not a topic of the pipeline's own cluster and settings"
    made = subject.made_by
    if isinstance(made, Source):
        if not isinstance(made.origin, TopicOrigin) or subject.name != first:
            return "it is no topic, or a second stream"
        if made.format.encoding is Encoding.AVRO:
            return "it has Avro, which is decoded in Python"
        has_limit = made.origin.max_records_per_batch is not None
        return "it has max_records_per_batch, and records have no batches" if has_limit else None
    if isinstance(made, Unplanned) or (subject.path.state and subject.name not in subject.path.state):
        return None  # it, or what is before it, is refused
    is_plain = isinstance(made, RowSql) and made.shape.is_plain
    return None if is_plain else PLAIN


def targets(plan: Plan) -> Iterator[Refusal]:
    """Two ends do not replace rows of one table, or write one folder; a topic is not read by what writes it."""
    first: dict[tuple[str, str], End] = {}
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


def stored_in(end: End, pipeline: Pipeline) -> tuple[str, str] | None:
    """What two ends share if they write one table or one folder, whatever its spelling."""
    match end.target:
        case FilesTarget(path=path):
            return "files", _folder(path, pipeline)
        case TableTarget(table=table, url=url):
            return _database(url, pipeline), table.lower()
        case LakehouseTarget(format=kind, path=str() as path):
            return kind, _folder(path, pipeline)
        case LakehouseTarget(format=kind, name=name):
            return kind, name.lower() if kind is LakehouseFormat.DELTA else name  # catalogs of Iceberg may have cases
    return None


def _folder(path: str, pipeline: Pipeline) -> str:
    """The folder that a path or URL names, the same for all spellings of it."""
    scheme, separator, rest = path.rpartition("://")
    if separator and scheme.lower() != "file":
        return f"{scheme}{separator}{normpath(rest)}"
    return normpath(pipeline.below(rest))


def _database(url: str | None, pipeline: Pipeline) -> str:
    """The database of a URL, the same for all spellings of a driver and of a file of SQLite."""
    kind, _, rest = (url or pipeline.warehouse or f"sqlite:///{pipeline.name}.db").partition("://")
    kind = kind.partition("+")[0]
    if kind == "sqlite":
        return _folder(rest.partition("?")[0].removeprefix("/"), pipeline)
    return f"{'postgresql' if kind == 'postgres' else kind}://{rest}"
