"""What follows when a pipeline reads again what it has read before, said plainly for each sink and view."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.pipelines.definition.model import (
    FilesTarget,
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
    from odradek.pipelines.spark.flows import Flow


def reset_effects(flows: Iterable[Flow], start: Start | None) -> list[str]:
    """Of flows whose checkpoints are forgotten; `start` is where they begin, None their sources' own start."""
    is_whole = start is None or start.at is StartAt.EARLIEST
    lines: list[str] = []
    for flow in flows:
        lines += [sink_effect(sink, is_whole) for sink in flow.sinks]
        if flow.files is not None and isinstance(flow.files.target, FilesTarget):
            lines.append(
                f"files {flow.files.target.path}: the folder is set aside under another name, a new one is begun"
            )
        lines += [view_effect(view, is_whole) for view in flow.views]
    return lines


def sink_effect(sink: Sink, is_whole: bool) -> str:
    target = sink.target
    if isinstance(target, TopicTarget):
        return f"topic {target.topic}: records that are made again are written again, with the same odradek-id"
    if isinstance(target, TableTarget):
        if sink.mode is not SinkMode.UPSERT:
            return f"table {target.table}: rows that are made again are added again; empty it first if they must not be"
        parts = "" if is_whole else "; groups that the start cuts through count only what comes after it"
        return f"table {target.table}: rows that are made again replace those of the same key{parts}"
    if isinstance(target, SparkTarget | PythonTarget):
        return f"sink {sink.name}: gets rows that are made again a second time"
    return f"sink {sink.name}: shows again what it has shown"


def view_effect(view: View, is_whole: bool) -> str:
    if isinstance(view.content, LatestRows):
        until = "" if view.content.order_by is not None else ", and is behind until it has caught up"
        return f"view {view.name}: keeps its rows; those of the same key are replaced as they are made again{until}"
    if is_whole:
        return f"view {view.name}: its groups are counted again from nothing, and are behind until it has caught up"
    return f"view {view.name}: its groups count only what comes after the start (`rebuild` counts the whole log)"


def backfill_effects(sinks: Iterable[Sink]) -> list[str]:
    """Of a range that is computed as a batch."""
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
    """A part of the log says nothing about a whole group, nor without an order about which row is the latest."""
    return isinstance(view.content, LatestRows) and view.content.order_by is not None
