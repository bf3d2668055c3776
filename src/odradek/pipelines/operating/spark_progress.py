"""Converts Spark's progress of a query to an event: offsets, duration, size of the state, watermark and late rows."""

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
        "is_idle": "addBatch" not in (progress.get("durationMs") or {}),  # there were no new records
        "at": progress["timestamp"],  # start of the batch
        "batch_ms": progress.get("batchDuration") or 0,
        "rows_per_s": number(progress.get("processedRowsPerSecond")),
        "positions": merged(each.get("endOffset") for each in sources),
        "began": merged(began_at(each) for each in sources),
        "state_rows": sum(each.get("numRowsTotal") or 0 for each in operators),
        "state_bytes": sum(each.get("memoryUsedBytes") or 0 for each in operators),
        "late_rows": sum(each.get("numRowsDroppedByWatermark") or 0 for each in operators),
        "watermark": watermark_of(progress),
    }


def watermark_of(progress: Mapping[str, Any]) -> str | None:
    """The watermark of the batch; None without one, and before it has advanced (Spark reports 1970)."""
    found = (progress.get("eventTime") or {}).get("watermark")
    return None if found is None or str(found).startswith("1970-01-01T00:00:00") else str(found)


def began_at(source: Mapping[str, Any]) -> Any:
    """The start offsets of a batch. Spark does not report those of the first batch, only its row count."""
    began = topic_offsets(source.get("startOffset"))
    if began:
        return began
    ends = topic_offsets(source.get("endOffset"))
    places = [(topic, partition) for topic, partitions in ends.items() for partition in partitions]
    if not places:
        return None
    # Only the sum is used, so all rows are attributed to the first partition.
    topic, partition = places[0]
    ends[topic][partition] -= source.get("numInputRows") or 0
    return ends


def number(value: object) -> float:
    """A number of Spark's progress; 0 for NaN, which Spark writes after a division by zero."""
    return float(value) if isinstance(value, int | float) and value == value else 0.0  # noqa: PLR0124 - tests for NaN


def merged(offsets: Any) -> Offsets:
    """The offsets of all sources that are topics; other sources have none."""
    found: Offsets = {}
    for each in offsets:
        for topic, partitions in topic_offsets(each).items():
            found.setdefault(topic, {}).update(partitions)
    return found


def ambiguous_topics(offsets: Any) -> list[str]:
    """The topics of which two sources are at different offsets of a partition."""
    seen: dict[tuple[str, str], int] = {}
    found: dict[str, None] = {}
    for each in offsets:
        for topic, partitions in topic_offsets(each).items():
            for partition, offset in partitions.items():
                if seen.setdefault((topic, partition), offset) != offset:
                    found[topic] = None
    return list(found)


def topic_offsets(offsets: Any) -> Offsets:
    """Parses `{"topic": {"0": 5}}`, an object or its JSON text; empty for anything else."""
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
