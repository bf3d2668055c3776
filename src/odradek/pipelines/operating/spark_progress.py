"""Spark's report of a query's last batch as an event: how far it is, how long it took, what it remembers."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from odradek.pipelines.operating.events import Event

Offsets = dict[str, dict[str, int]]  # by topic and partition


def progress_event(flow: str, progress: Mapping[str, Any]) -> Event:
    operators = progress.get("stateOperators") or []
    sources = progress.get("sources") or []
    return {
        "kind": "progress",
        "flow": flow,
        "batch": progress["batchId"],
        "is_idle": "addBatch" not in (progress.get("durationMs") or {}),  # it looked, and there was nothing to do
        "at": progress["timestamp"],  # when the batch began
        "batch_ms": progress.get("batchDuration") or 0,
        "rows_per_s": number(progress.get("processedRowsPerSecond")),
        "positions": merged(each.get("endOffset") for each in sources),
        "began": merged(began_at(each) for each in sources),
        "state_rows": sum(each.get("numRowsTotal") or 0 for each in operators),
        "state_bytes": sum(each.get("memoryUsedBytes") or 0 for each in operators),
    }


def began_at(source: Mapping[str, Any]) -> Any:
    """Where the batch began. Spark does not tell of the very first one, but how many rows it had."""
    began = topic_offsets(source.get("startOffset"))
    if began:
        return began
    ends = topic_offsets(source.get("endOffset"))
    places = [(topic, partition) for topic, partitions in ends.items() for partition in partitions]
    if not places:
        return None
    # Only the sum is of use: all rows are taken to be of the first partition.
    topic, partition = places[0]
    ends[topic][partition] -= source.get("numInputRows") or 0
    return ends


def number(value: object) -> float:
    """Spark writes NaN where it has divided by nothing."""
    return float(value) if isinstance(value, int | float) and value == value else 0.0  # noqa: PLR0124 - NaN is not


def merged(offsets: Any) -> Offsets:
    """Of all sources that are topics; files count otherwise."""
    found: Offsets = {}
    for each in offsets:
        for topic, partitions in topic_offsets(each).items():
            found.setdefault(topic, {}).update(partitions)
    return found


def topic_offsets(offsets: Any) -> Offsets:
    """`{"topic": {"0": 5}}`, as an object or as its text; nothing where it is something else."""
    if isinstance(offsets, str):
        try:
            offsets = json.loads(offsets)
        except ValueError:
            return {}
    if not isinstance(offsets, dict) or not all(isinstance(each, dict) for each in offsets.values()):
        return {}
    return {
        topic: {partition: offset for partition, offset in partitions.items() if isinstance(offset, int)}
        for topic, partitions in offsets.items()
    }
