"""Describes, for each end, what happens when a pipeline reads records again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.pipelines.definition import model
from odradek.pipelines.definition.vocabulary import StartAt
from odradek.pipelines.planning.plan import EndMode, OutputMode

if TYPE_CHECKING:
    from collections.abc import Iterable

    from odradek.pipelines.planning.plan import End, Flow, Plan

CHANGES = "replayed changes take their place in the order of the sequence, so that nothing older replaces a row"
APPENDED = "replayed rows are appended again; empty the table first to avoid duplicates"
REPLACED = "replayed rows replace those of the same key"


def reset_effects(flows: Iterable[Flow], start: model.Start | None) -> list[str]:
    """The effects of a reset on these flows, which start at `start`, or at their sources' own start if None."""
    is_whole = start is None or start.at is StartAt.EARLIEST
    lines: list[str] = []
    for flow in flows:
        if flow.files is not None and isinstance(flow.files.target, model.FilesTarget):
            lines.append(f"files {flow.files.target.path}: the folder is renamed, and a new one is written")
        can_change = flow.mode is OutputMode.UPDATE
        lines += [effect(each, is_whole=is_whole, can_change=can_change) for each in flow.ends]
    return lines


def backfill_effects(plan: Plan) -> list[str]:
    """The effects of running a range as a batch."""
    unseen = "new files are added; Spark's own reader does not see them in a folder that a stream writes to"
    return [
        f"files {end.target.path}: {unseen}"
        if isinstance(end.target, model.FilesTarget)
        else effect(end, is_whole=False, can_change=plan.path(end.input).can_change)
        for end in plan.ends
    ]


def effect(end: End, *, is_whole: bool, can_change: bool) -> str:
    """`is_whole` if all records are read; `can_change` if the rows are groups that change until then."""
    match end.target:
        case model.TopicTarget(topic=topic):
            return f"topic {topic}: replayed records are written again, with the same odradek-id"
        case model.LakehouseTarget() as target:
            return f"{target.format} table {target.name}: {REPLACED if target.key else APPENDED}"
        case model.TableTarget(table=name):
            table_effect = _table_effect(end, is_whole=is_whole, can_change=can_change)
            return f"{'view' if end.is_view else 'table'} {name}: {table_effect}"
        case model.FilesTarget(path=path):
            return f"files {path}: new files are added"
    return f"sink {end.name}: receives replayed rows again"


def _table_effect(end: End, *, is_whole: bool, can_change: bool) -> str:
    if end.mode is EndMode.CHANGES:
        return CHANGES
    if end.mode is not EndMode.KEYED:
        return APPENDED
    if can_change and is_whole:
        return "its groups are computed again, and incomplete until the pipeline has caught up"
    if can_change:
        return "its groups have only the records after the start (`rebuild` uses the whole log)"
    if end.order_by:
        return f"{REPLACED} that have no greater {', '.join(end.order_by)}"
    return f"{REPLACED}; it is outdated until the pipeline has caught up"


def needs_whole_log(plan: Plan, end: End) -> bool:
    """Whether a part of the log cannot update an end: groups, and latest rows by their arrival."""
    is_ordered = end.mode is EndMode.CHANGES or bool(end.order_by)
    return end.is_view and (plan.path(end.input).groups is not None or not is_ordered)
