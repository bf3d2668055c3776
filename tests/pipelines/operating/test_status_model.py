"""Events become a status: rates, lag, and counts that continue across restarts."""

from __future__ import annotations

import json
from typing import Any

from odradek.pipelines.operating.events import EventLines, runs
from odradek.pipelines.operating.figures import figures_line
from odradek.pipelines.operating.spark_progress import progress_event
from odradek.pipelines.operating.status import PipelineStatus, State, decoded
from odradek.pipelines.operating.status_model import StatusModel

BEGAN_S = 1_794_740_000.0  # 2026-11-15T10:53:20Z


def spark_progress(batch: int, at: str, start: Any, end: Any, **more: Any) -> dict[str, Any]:
    """Progress as Spark 4.3 writes it, shortened."""
    return {
        "batchId": batch,
        "timestamp": at,
        "batchDuration": 2000,
        "numInputRows": 100,
        "processedRowsPerSecond": 50.0,
        "durationMs": {"addBatch": 1900},
        "stateOperators": [{"numRowsTotal": 5, "memoryUsedBytes": 8360}, {"numRowsTotal": 2, "memoryUsedBytes": 40}],
        "sources": [{"startOffset": start, "endOffset": end, "numInputRows": 100}],
        **more,
    }


def model() -> StatusModel:
    found = StatusModel(PipelineStatus("p", State.STARTING))
    found.take(runs(["readings"]), BEGAN_S)
    return found


# PySpark returns offsets as JSON text, and `null` as the start of the first batch.
FIRST = spark_progress(0, "2026-11-15T10:53:20.000Z", "null", '{"rigs": {"0": 60, "1": 40}}')
SECOND = spark_progress(1, "2026-11-15T10:53:28.000Z", {"rigs": {"0": 60, "1": 40}}, {"rigs": {"0": 160, "1": 140}})


def test_batches_are_counted_and_rates_are_means_over_them() -> None:
    found = model()
    found.take(progress_event("readings", FIRST), BEGAN_S + 2)
    found.take(progress_event("readings", SECOND), BEGAN_S + 10.5)
    (flow,) = found.snapshot(BEGAN_S + 11).flows
    assert flow.batches == 2
    assert flow.batch == 1
    assert flow.batch_ms == 2000
    assert flow.read == {"rigs": 300}  # Spark reports the row count of the first batch, but not its start
    assert flow.processed_per_s == 30  # 300 in the ten seconds from the start of the first to the end of the second
    assert (flow.state_rows, flow.state_bytes) == (7, 8400)


def test_a_progress_that_is_reported_twice_counts_once() -> None:
    found = model()
    for seconds in (2, 3, 4):
        found.take(progress_event("readings", FIRST), BEGAN_S + seconds)
    (flow,) = found.snapshot(BEGAN_S + 4).flows
    assert flow.batches == 1
    assert flow.read == {"rigs": 100}


def test_a_query_with_nothing_to_do_slows_down_and_keeps_its_last_batch() -> None:
    found = model()
    found.take(progress_event("readings", FIRST), BEGAN_S + 2)
    idle = spark_progress(
        1, "2026-11-15T10:54:20.000Z", {"rigs": {"0": 60, "1": 40}}, {"rigs": {"0": 60, "1": 40}},
        batchDuration=3, durationMs={"latestOffset": 2},
    )  # fmt: skip
    for seconds in range(3, 40):
        found.take(progress_event("readings", idle), BEGAN_S + seconds)
    (flow,) = found.snapshot(BEGAN_S + 40).flows
    assert flow.processed_per_s == 0
    assert flow.batch_ms == 2000
    assert flow.batches == 1


def test_lag_is_what_the_topics_hold_beyond_the_last_batch() -> None:
    found = model()
    found.take(progress_event("readings", FIRST), BEGAN_S + 2)
    for seconds, end in ((2, 100), (4, 160)):
        ends = {"kind": "ends", "flow": "readings", "offsets": {"rigs": {"0": end, "1": 40, "2": 7}}}
        found.take(ends, BEGAN_S + seconds)
    (flow,) = found.snapshot(BEGAN_S + 4).flows
    assert flow.lag == {"rigs": 107}  # a partition that was added later has not been read
    assert flow.input_per_s == 30


def test_counts_live_through_a_restart_and_the_pause_is_no_rate() -> None:
    found = model()
    found.take(progress_event("readings", FIRST), BEGAN_S + 2)
    found.take({"kind": "failed", "error": "broken", "retry": "likely"}, BEGAN_S + 3)
    found.take(runs(["readings"]), BEGAN_S + 7)
    found.take(progress_event("readings", SECOND), BEGAN_S + 10)
    found.take({"kind": "batch", "flow": "readings", "rejected": 3, "violations": [violation(2)]}, BEGAN_S + 10)
    written = {"written": {"latest": 2, "warnings": 1}}
    for _ in range(2):
        found.take({"kind": "batch", "flow": "readings", "rejected": 0, "violations": [], **written}, BEGAN_S + 10)
    found.take({"kind": "batch", "flow": "readings", "rejected": 1, "violations": [violation(5)]}, BEGAN_S + 10)
    status = found.snapshot(BEGAN_S + 10)
    assert status.flows[0].read == {"rigs": 300}
    assert status.flows[0].processed_per_s == 100
    assert status.flows[0].unparsed == 4
    assert status.flows[0].written == {"latest": 4, "warnings": 2}
    assert [each.rows for each in status.expectations] == [7]
    assert status.last_error == "broken"
    assert status.state is State.RUNNING


def violation(rows: int) -> dict[str, Any]:
    return {"step": "s", "expectation": "e", "otherwise": "drop", "rows": rows}


def test_files_have_no_offsets_and_the_rate_is_sparks() -> None:
    found = model()
    found.take(progress_event("readings", spark_progress(0, FIRST["timestamp"], None, {"logOffset": 0})), BEGAN_S + 2)
    (flow,) = found.snapshot(BEGAN_S + 2).flows
    assert flow.read == {}
    assert flow.processed_per_s == 50


def test_a_status_is_the_same_after_it_was_kept_as_json() -> None:
    found = model()
    found.take(progress_event("readings", SECOND), BEGAN_S + 10)
    found.take({"kind": "batch", "flow": "readings", "rejected": 0, "violations": [violation(1)]}, BEGAN_S)
    status = found.snapshot(BEGAN_S)
    assert decoded(PipelineStatus, json.loads(json.dumps(status.as_object()))) == status


def test_events_may_come_in_pieces() -> None:
    lines = EventLines()
    text = b"".join(json.dumps(each).encode() + b"\n" for each in (runs(["a"]), runs(["b"])))
    found = [event["flows"] for at in range(len(text)) for event in lines.take(text[at : at + 1])]
    assert found == [["a"], ["b"]]


def with_watermark(batch: int, at: str, dropped: int, watermark: str) -> dict[str, Any]:
    operators = [{"numRowsTotal": 5, "numRowsDroppedByWatermark": dropped}, {"numRowsDroppedByWatermark": 1}]
    end = {"rigs": {"0": 100 * (batch + 1)}}
    return spark_progress(batch, at, None, end, stateOperators=operators, eventTime={"watermark": watermark})


def test_late_rows_are_a_total_that_survives_a_restart() -> None:
    found = model()
    first = with_watermark(0, "2026-11-15T10:53:20.000Z", 2, "1970-01-01T00:00:00.000Z")
    second = with_watermark(1, "2026-11-15T10:53:22.000Z", 3, "2026-11-15T10:52:00.000Z")
    for event in (first, first, second):  # a progress may be polled twice
        found.take(progress_event("readings", event), BEGAN_S + 2)
    (flow,) = found.snapshot(BEGAN_S + 3).flows
    assert (flow.late_rows, flow.watermark) == (7, "2026-11-15T10:52:00.000Z")
    found.take(runs(["readings"]), BEGAN_S + 60)
    third = with_watermark(2, "2026-11-15T10:54:22.000Z", 0, "2026-11-15T10:53:00.000Z")
    found.take(progress_event("readings", third), BEGAN_S + 62)
    status = found.snapshot(BEGAN_S + 63)
    assert (status.late_rows, status.flows[0].watermark) == (8, "2026-11-15T10:53:00.000Z")


def test_the_lag_is_unknown_before_the_first_batch() -> None:
    assert model().snapshot(BEGAN_S).lag is None
    assert "lag unknown before the first batch" in figures_line(model().snapshot(BEGAN_S))


def test_flows_that_do_not_count_the_rows_of_their_state_are_known_at_the_start() -> None:
    found = model()
    found.take(runs(["joined", "readings"], {"joined"}), BEGAN_S)
    flows = found.snapshot(BEGAN_S).flows
    assert {each.name: each.counts_state_rows for each in flows} == {"joined": False, "readings": True}
