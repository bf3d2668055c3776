"""Describes, for each sink and view, what happens when a pipeline reads records again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.pipelines.definition.model import (
    Changes,
    FilesTarget,
    LakehouseTarget,
    LatestRows,
    PythonTarget,
    SparkTarget,
    TableTarget,
    TopicTarget,
)
from odradek.pipelines.definition.vocabulary import SinkMode, StartAt

if TYPE_CHECKING:
    from collections.abc import Iterable

    from odradek.pipelines.definition.model import Sink, Start, View
    from odradek.pipelines.planning.flow import Flow


REPLAYED_CHANGES = (
    "replayed changes take their place in the order of the sequence, so that nothing older replaces a row"
)


def reset_effects(flows: Iterable[Flow], start: Start | None) -> list[str]:
    """The effects of a reset on these flows, which start at `start`, or at their sources' own start if None."""
    is_whole = start is None or start.at is StartAt.EARLIEST
    lines: list[str] = []
    for flow in flows:
        lines += [sink_effect(sink, is_whole) for sink in flow.sinks]
        if flow.files is not None and isinstance(flow.files.target, FilesTarget):
            lines.append(f"files {flow.files.target.path}: the folder is renamed, and a new one is written")
        lines += [view_effect(view, is_whole) for view in flow.views]
    return lines


def sink_effect(sink: Sink, is_whole: bool) -> str:
    target = sink.target
    if isinstance(target, LakehouseTarget):
        return lakehouse_effect(target)
    if isinstance(target, TopicTarget):
        return f"topic {target.topic}: replayed records are written again, with the same odradek-id"
    if isinstance(target, TableTarget):
        if target.changes is not None:
            return f"table {target.table}: {REPLAYED_CHANGES}"
        if sink.mode is not SinkMode.UPSERT:
            return f"table {target.table}: replayed rows are appended again; empty the table first to avoid duplicates"
        parts = "" if is_whole else "; groups with records before the start include only those after it"
        newer = "" if target.order_column is None else f" that have no greater {target.order_column}"
        return f"table {target.table}: replayed rows replace those of the same key{newer}{parts}"
    if isinstance(target, SparkTarget | PythonTarget):
        return f"sink {sink.name}: receives replayed rows again"
    return f"sink {sink.name}: prints replayed rows again"


def lakehouse_effect(target: LakehouseTarget) -> str:
    what = f"{target.format} table {target.name}"
    if target.changes is not None:
        return f"{what}: {REPLAYED_CHANGES}"
    if target.key:
        return f"{what}: replayed rows replace those of the same key"
    return f"{what}: replayed rows are appended again; empty the table first to avoid duplicates"


def view_effect(view: View, is_whole: bool) -> str:
    if isinstance(view.content, Changes):
        return f"view {view.name}: {REPLAYED_CHANGES}"
    if isinstance(view.content, LatestRows):
        until = "" if view.content.order_column is not None else "; it is outdated until the pipeline has caught up"
        return f"view {view.name}: rows stay, and replayed rows replace those of the same key{until}"
    if is_whole:
        return f"view {view.name}: its groups are recomputed, and incomplete until the pipeline has caught up"
    return f"view {view.name}: its groups include only records after the start (`rebuild` uses the whole log)"


def backfill_effects(sinks: Iterable[Sink]) -> list[str]:
    """The effects of running a range as a batch."""
    lines: list[str] = []
    for sink in sinks:
        if isinstance(sink.target, FilesTarget):
            lines.append(
                f"files {sink.target.path}: new files are added; Spark's own reader does not see them in a folder that "
                "a stream writes to"
            )
        else:
            lines.append(sink_effect(sink, is_whole=False))
    return lines


def is_safe_to_backfill(view: View) -> bool:
    """Whether part of the log suffices to update the view: not for groups, nor for latest rows without `order_by`."""
    if isinstance(view.content, Changes):
        return True
    return isinstance(view.content, LatestRows) and view.content.order_column is not None
