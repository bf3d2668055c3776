"""A status as Prometheus metrics, and their HTTP server. Names end in their units, counters in `_total`."""

from __future__ import annotations

import threading
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Self

from odradek.metrics.exposition import CONTENT_TYPE, expose
from odradek.metrics.samples import Definition, Family, Kind, Point
from odradek.pipelines.operating.status import State

if TYPE_CHECKING:
    from collections.abc import Iterator

    from odradek.pipelines.operating.status import FlowStatus, PipelineStatus

    Sample = tuple[str, float, dict[str, str]]  # name, value, labels beside that of the pipeline

PREFIX = "odradek_pipeline_"
MEANINGS = {  # in the order of the text
    "up": "1 while the pipeline's queries run, 0 while it starts or waits for a restart.",
    "restarts_total": "Restarts after a failure.",
    "start_time_seconds": "Start of the process, in seconds since 1970.",
    "expectation_violations_total": "Rows that did not meet an expectation, by its otherwise.",
    "batches_total": "Finished batches.",
    "batch_duration_seconds": "Duration of the last batch.",
    "last_batch_timestamp_seconds": "Start of the last batch, in seconds since 1970.",
    "input_records_per_second": "Records written to the topics of a flow.",
    "processed_records_per_second": "Records read by a flow.",
    "read_records_total": "Records read from a topic.",
    "lag_records": "Records of a topic that have not been read.",
    "unparsed_records_total": "Records that failed to parse.",
    "written_rows_total": "Rows written to a sink or view.",
    "state_rows": "Rows in the state of a flow.",
    "state_memory_bytes": "Memory used by the state of a flow.",
    "late_rows_total": "Rows dropped because their event time was before the watermark.",
    "watermark_timestamp_seconds": "Watermark of a flow, in seconds since 1970.",
}


def metrics_text(status: PipelineStatus) -> str:
    """The samples of a status in the text format."""
    points: dict[str, list[Point]] = {name: [] for name in MEANINGS}
    for name, value, labels in samples_of(status):
        points[name].append(Point("", (("pipeline", status.name), *labels.items()), value))
    return expose(Family(definition_of(name), found) for name, found in points.items() if found)


def definition_of(name: str) -> Definition:
    kind = Kind.COUNTER if name.endswith("_total") else Kind.GAUGE
    return Definition(PREFIX + name, kind, (), MEANINGS[name])


def samples_of(status: PipelineStatus) -> Iterator[Sample]:
    yield "up", status.state is State.RUNNING, {}
    yield "restarts_total", status.restarts, {}
    yield "start_time_seconds", status.started_s, {}
    for each in status.expectations:
        labels = {"step": each.step, "expectation": each.name, "otherwise": each.otherwise}
        yield "expectation_violations_total", each.rows, labels
    for flow in status.flows:
        yield from ((name, value, {"flow": flow.name, **labels}) for name, value, labels in flow_samples(flow))


def flow_samples(flow: FlowStatus) -> Iterator[Sample]:
    yield "batches_total", flow.batches, {}
    yield "unparsed_records_total", flow.unparsed, {}
    yield "input_records_per_second", flow.input_per_s, {}
    yield "processed_records_per_second", flow.processed_per_s, {}
    yield "late_rows_total", flow.late_rows, {}
    if flow.batch_at is not None:
        yield "batch_duration_seconds", flow.batch_ms / 1000, {}
        yield "last_batch_timestamp_seconds", datetime.fromisoformat(flow.batch_at).timestamp(), {}
        if flow.counts_state_rows:
            yield "state_rows", flow.state_rows, {}
        yield "state_memory_bytes", flow.state_bytes, {}
    if flow.watermark is not None:
        yield "watermark_timestamp_seconds", datetime.fromisoformat(flow.watermark).timestamp(), {}
    for end, count in flow.written.items():
        yield "written_rows_total", count, {"sink": end}
    for topic, records in flow.read.items():
        yield "read_records_total", records, {"topic": topic}
    for topic, records in flow.lag.items():
        yield "lag_records", records, {"topic": topic}


class MetricsServer(ThreadingHTTPServer):
    """Serves in its own thread; `text` may be replaced at any time."""

    daemon_threads = True

    def __init__(self, host: str, port: int) -> None:
        """Raises OSError if the port is in use."""
        super().__init__((host, port), MetricsHandler)
        self.text = ""
        self._thread = threading.Thread(target=self.serve_forever, name="metrics", daemon=True)

    @property
    def address(self) -> str:
        host, port = self.server_address[:2]
        return f"{host!s}:{port}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self.shutdown()
        self.server_close()
        self._thread.join()


class MetricsHandler(BaseHTTPRequestHandler):
    """Answers one request."""

    timeout = 10
    server: MetricsServer

    def do_GET(self) -> None:
        is_found = self.path.split("?")[0] == "/metrics"
        body = self.server.text.encode() if is_found else b"try /metrics\n"
        self.send_response(200 if is_found else 404)
        self.send_header("Content-Type", CONTENT_TYPE)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_arguments: object) -> None:
        """Does not log requests."""
