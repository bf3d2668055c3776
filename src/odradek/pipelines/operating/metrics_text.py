"""Formats a status as Prometheus text; names end in their units, counters in `_total`."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

from odradek.pipelines.operating.status import State

if TYPE_CHECKING:
    from odradek.pipelines.operating.status import FlowStatus, PipelineStatus

PREFIX = "odradek_pipeline_"
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
Labels = dict[str, str]


@dataclass(slots=True)
class Family:
    """All samples of one metric."""

    name: str
    kind: str
    meaning: str
    samples: list[tuple[Labels, float]] = field(default_factory=list)

    def add(self, value: float, **labels: str) -> None:
        self.samples.append((labels, value))

    def lines(self) -> list[str]:
        name = PREFIX + self.name
        return [
            f"# HELP {name} {self.meaning}",
            f"# TYPE {name} {self.kind}",
            *(f"{name}{labels_text(labels)} {number_text(value)}" for labels, value in self.samples),
        ]


def labels_text(labels: Labels) -> str:
    return "{" + ",".join(f'{name}="{escaped(value)}"' for name, value in labels.items()) + "}"


def escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def number_text(value: float) -> str:
    return str(int(value)) if float(value).is_integer() else repr(float(value))


def metrics_text(status: PipelineStatus) -> str:
    families = [*pipeline_families(status), *flow_families(status)]
    return "".join(f"{line}\n" for family in families if family.samples for line in family.lines())


def pipeline_families(status: PipelineStatus) -> list[Family]:
    mine = {"pipeline": status.name}
    up = Family("up", "gauge", "1 while the pipeline's queries run, 0 while it starts or waits for a restart.")
    up.add(status.state is State.RUNNING, **mine)
    restarts = Family("restarts_total", "counter", "Restarts after a failure.")
    restarts.add(status.restarts, **mine)
    started = Family("start_time_seconds", "gauge", "Start of the process, in seconds since 1970.")
    started.add(status.started_s, **mine)
    expectations = Family(
        "expectation_violations_total", "counter", "Rows that did not meet an expectation, by its otherwise."
    )
    for each in status.expectations:
        expectations.add(each.rows, **mine, step=each.step, expectation=each.name, otherwise=each.otherwise)
    return [up, restarts, started, expectations]


def flow_families(status: PipelineStatus) -> list[Family]:
    batches = Family("batches_total", "counter", "Finished batches.")
    duration = Family("batch_duration_seconds", "gauge", "Duration of the last batch.")
    began = Family("last_batch_timestamp_seconds", "gauge", "Start of the last batch, in seconds since 1970.")
    arriving = Family("input_records_per_second", "gauge", "Records written to the topics of a flow.")
    processed = Family("processed_records_per_second", "gauge", "Records read by a flow.")
    read = Family("read_records_total", "counter", "Records read from a topic.")
    lag = Family("lag_records", "gauge", "Records of a topic that have not been read.")
    unparsed = Family("unparsed_records_total", "counter", "Records that failed to parse.")
    written = Family("written_rows_total", "counter", "Rows written to a sink or view.")
    rows = Family("state_rows", "gauge", "Rows in the state of a flow.")
    memory = Family("state_memory_bytes", "gauge", "Memory used by the state of a flow.")
    late = Family("late_rows_total", "counter", "Rows dropped because their event time was before the watermark.")
    mark = Family("watermark_timestamp_seconds", "gauge", "Watermark of a flow, in seconds since 1970.")
    for flow in status.flows:
        mine = {"pipeline": status.name, "flow": flow.name}
        batches.add(flow.batches, **mine)
        unparsed.add(flow.unparsed, **mine)
        arriving.add(flow.input_per_s, **mine)
        processed.add(flow.processed_per_s, **mine)
        if flow.batch_at is not None:
            duration.add(flow.batch_ms / 1000, **mine)
            began.add(batch_time_s(flow), **mine)
            if flow.counts_state_rows:
                rows.add(flow.state_rows, **mine)
            memory.add(flow.state_bytes, **mine)
        late.add(flow.late_rows, **mine)
        if flow.watermark is not None:
            mark.add(datetime.fromisoformat(flow.watermark).timestamp(), **mine)
        for end, count in flow.written.items():
            written.add(count, **mine, sink=end)
        for topic, records in flow.read.items():
            read.add(records, **mine, topic=topic)
        for topic, records in flow.lag.items():
            lag.add(records, **mine, topic=topic)
    return [batches, duration, began, arriving, processed, read, lag, unparsed, written, rows, memory, late, mark]


def batch_time_s(flow: FlowStatus) -> float:
    return datetime.fromisoformat(flow.batch_at or "").timestamp()
