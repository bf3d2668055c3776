"""Moves the time of a stopped query: adds a batch without rows to its checkpoint, which Spark runs at the next start.

The first lines of Spark's offset log are the watermark and the processing time of a batch. Spark executes the last
batch of that log with the times in it if the batch is not in the commit log.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pyspark.sql.streaming.stateful_processor import TimerValues

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql.streaming.stateful_processor import StatefulProcessor


def add_empty_batch(checkpoint: Path, event_time_ms: int, processing_time_ms: int) -> bool:
    """Adds a batch whose watermark is `event_time_ms` later, at a processing time; False if the query has no state.

    A watermark that no row has set stays unset.
    """
    batches = [int(each.name) for each in (checkpoint / "offsets").glob("[0-9]*")]
    if not batches or not (checkpoint / "state").is_dir():
        return False
    last = max(batches)
    version, metadata, *offsets = (checkpoint / "offsets" / str(last)).read_text().split("\n")
    times: dict[str, Any] = json.loads(metadata)
    watermark_ms = int(
        json.loads((checkpoint / "commits" / str(last)).read_text().split("\n")[1])["nextBatchWatermarkMs"]
    )
    times["batchWatermarkMs"] = watermark_ms + event_time_ms if watermark_ms > 0 else 0
    times["batchTimestampMs"] = processing_time_ms
    (checkpoint / "offsets" / str(last + 1)).write_text("\n".join([version, json.dumps(times), *offsets]))
    return True


def with_later_clock(processor: type[StatefulProcessor], later_ms: int, since_ms: int) -> type[StatefulProcessor]:
    """The processor with its processing time moved by `later_ms`, except in batches at `since_ms` or after it."""

    def moved(values: TimerValues) -> TimerValues:
        now_ms = values.getCurrentProcessingTimeInMs()
        return TimerValues(now_ms if now_ms >= since_ms else now_ms + later_ms, values.getCurrentWatermarkInMs())

    def handle_input_rows(self: Any, key: Any, rows: Any, timerValues: TimerValues) -> Iterator[Any]:  # noqa: N803 - Spark passes it by this name
        return processor.handleInputRows(self, key, rows, moved(timerValues))

    def handle_expired_timer(
        self: Any,
        key: Any,
        timerValues: TimerValues,  # noqa: N803 - as above
        expiredTimerInfo: Any,  # noqa: N803 - as above
    ) -> Iterator[Any]:
        return processor.handleExpiredTimer(self, key, moved(timerValues), expiredTimerInfo)

    methods = {"handleInputRows": handle_input_rows, "handleExpiredTimer": handle_expired_timer}
    return type(processor.__name__, (processor,), {**methods, "__module__": "__main__"})  # sent to workers by value
