"""Checks that sinks and views do not write the same files or the same rows of a table."""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING

from odradek.pipelines.definition.graph import place_of
from odradek.pipelines.definition.model import FilesTarget, LatestRows, Sink, TableTarget
from odradek.pipelines.definition.parsing_changes import changes_of
from odradek.pipelines.definition.vocabulary import Engine, SinkMode

if TYPE_CHECKING:
    from odradek.pipelines.definition.model import Pipeline, View
    from odradek.pipelines.definition.places import Problems


def check_outputs(pipeline: Pipeline, problems: Problems) -> None:
    if pipeline.engine is not Engine.BATCH:  # which writes them one after the other
        check_files(pipeline, problems)
        check_tables(pipeline, problems)


def check_files(pipeline: Pipeline, problems: Problems) -> None:
    """Refuses two sinks with one folder. Spark recognizes a batch by its number, in a log of the folder: the batch of
    one sink would count as written because that of the other is."""
    first: dict[PurePath, Sink] = {}
    for sink in pipeline.sinks:
        if not isinstance(sink.target, FilesTarget):
            continue
        before = first.setdefault(PurePath(pipeline.directory, sink.target.path), sink)
        if before is not sink:
            problems.error(
                place_of(sink, "files", "path"),
                f"sink '{sink.name}' writes the folder of sink '{before.name}': Spark would fail, or take the batches "
                "of one for those of the other, and skip them",
                "use another path, or unite the rows with UNION ALL in a step",
            )


def check_tables(pipeline: Pipeline, problems: Problems) -> None:
    """Refuses two outputs that replace rows of one table, unless both do so in the same order: which row stays would
    depend on the batches."""
    first: dict[tuple[str, str], Sink | View] = {}
    ends: list[Sink | View] = [*pipeline.sinks, *pipeline.views]
    for end in ends:
        found = table_of(end)
        if found is None:
            continue
        url, name = found
        before = first.setdefault((url or pipeline.warehouse or "", name.lower()), end)
        is_ordered = order_of(end) is not None and order_of(end) == order_of(before)
        if before is not end and (replaces_rows(end) or replaces_rows(before)) and not is_ordered:
            problems.error(
                place_of(end, "table"),
                f"{described(end)} writes the table of {described(before)}, and rows of one would replace those of "
                "the other, depending on the batches",
                "use another table, or unite the rows with UNION ALL in a step",
            )


def table_of(end: Sink | View) -> tuple[str | None, str] | None:
    """The database, if the end names one, and the table."""
    if not isinstance(end, Sink):
        return end.url, end.name
    return (end.target.url, end.target.table) if isinstance(end.target, TableTarget) else None


def replaces_rows(end: Sink | View) -> bool:
    return not isinstance(end, Sink) or end.mode is SinkMode.UPSERT or changes_of(end) is not None


def order_of(end: Sink | View) -> object:
    """What decides which row of a key stays; None if the order of arrival does."""
    changes = changes_of(end)
    if changes is not None:
        return changes.key, changes.sequence, changes.keeps_history
    kept = end.target if isinstance(end, Sink) else end.content
    if not isinstance(kept, TableTarget | LatestRows) or kept.order_by is None:
        return None
    return kept.key, kept.order_by


def described(end: Sink | View) -> str:
    return f"{'sink' if isinstance(end, Sink) else 'view'} '{end.name}'"
