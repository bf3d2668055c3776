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

CHANGES = "replayed changes take their place in the order of the sequence, so that nothing older replaces a row"
APPENDED = "replayed rows are appended again; empty the table first to avoid duplicates"
REPLACED = "replayed rows replace those of the same key"


def reset_effects(flows: Iterable[Flow], start: Start | None) -> list[str]:
    """The effects of a reset on these flows, which start at `start`, or at their sources' own start if None."""
    is_whole = start is None or start.at is StartAt.EARLIEST
    lines: list[str] = []
    for flow in flows:
        lines += [sink_effect(sink, is_whole) for sink in flow.sinks]
        if flow.files is not None and isinstance(flow.files.target, FilesTarget):
            lines.append(f"files {flow.files.target.path}: the folder is renamed, and a new one is written")
        lines += [f"view {view.name}: {view_effect(view, is_whole)}" for view in flow.views]
    return lines


def sink_effect(sink: Sink, is_whole: bool) -> str:
    match sink.target:
        case TopicTarget(topic=topic):
            return f"topic {topic}: replayed records are written again, with the same odradek-id"
        case LakehouseTarget() as target:
            return f"{target.format} table {target.name}: {REPLACED if target.key else APPENDED}"
        case TableTarget() as target if target.changes is not None or sink.mode is not SinkMode.UPSERT:
            return f"table {target.table}: {APPENDED if target.changes is None else CHANGES}"
        case TableTarget() as target:
            newer = "" if target.order_column is None else f" that have no greater {target.order_column}"
            parts = "" if is_whole else "; groups with records before the start include only those after it"
            return f"table {target.table}: {REPLACED}{newer}{parts}"
        case SparkTarget() | PythonTarget():
            return f"sink {sink.name}: receives replayed rows again"
        case _:
            return f"sink {sink.name}: prints replayed rows again"


def view_effect(view: View, is_whole: bool) -> str:
    match view.content:
        case Changes():
            return CHANGES
        case LatestRows(order_column=order):
            until = "" if order is not None else "; it is outdated until the pipeline has caught up"
            return f"rows stay, and {REPLACED}{until}"
        case _ if is_whole:
            return "its groups are recomputed, and incomplete until the pipeline has caught up"
        case _:
            return "its groups include only records after the start (`rebuild` uses the whole log)"


def backfill_effects(sinks: Iterable[Sink]) -> list[str]:
    """The effects of running a range as a batch."""
    unseen = "new files are added; Spark's own reader does not see them in a folder that a stream writes to"
    return [
        f"files {sink.target.path}: {unseen}" if isinstance(sink.target, FilesTarget) else sink_effect(sink, False)
        for sink in sinks
    ]


def is_safe_to_backfill(view: View) -> bool:
    """Whether part of the log suffices to update the view: not for groups, nor for latest rows without `order_by`."""
    match view.content:
        case Changes():
            return True
        case LatestRows(order_column=order):
            return order is not None
    return False
