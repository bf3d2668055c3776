"""Builds a pipeline's status from its events. Counts continue across restarts."""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import field, replace
from datetime import datetime
from typing import TYPE_CHECKING

from odradek.conventions.dataclass import dataclass
from odradek.pipelines.operating.status import ExpectationStatus, FlowStatus, PipelineStatus, State

if TYPE_CHECKING:
    from odradek.pipelines.operating.events import Event
    from odradek.pipelines.operating.status import Offsets

RATE_S = 15.0  # rates are means over this time, or over two batches if these take longer


@dataclass(slots=True)
class Sample:
    at_s: float
    records: int


@dataclass(slots=True)
class FlowModel:
    """The state of a flow, and the samples of its rates."""

    status: FlowStatus
    positions: Offsets = field(default_factory=dict)
    ends: Offsets = field(default_factory=dict)
    rows_per_s: float = 0.0
    last_batch: int | None = None
    read: deque[Sample] = field(default_factory=deque)
    arrived: deque[Sample] = field(default_factory=deque)

    def reset_after_restart(self) -> None:
        """Resets rates and batch numbers after a restart: batches may be replayed, and downtime must not count."""
        self.last_batch = None
        self.read.clear()
        self.arrived.clear()

    def take_progress(self, event: Event, now_s: float) -> None:
        if event["is_idle"]:
            for topic, partitions in event["positions"].items():
                self.positions.setdefault(topic, dict(partitions))
            self.sample(self.read, self.positions, now_s)
            return
        batch: int = event["batch"]
        began_s = datetime.fromisoformat(event["at"]).timestamp()
        is_new = batch != self.last_batch
        done = 1 if self.last_batch is None else max(batch - self.last_batch, 1)
        self.last_batch, self.rows_per_s = batch, event["rows_per_s"]
        totals = Counter(self.status.read)
        for topic, partitions in event["positions"].items():
            before = self.positions.get(topic, event["began"].get(topic, {}))
            for partition, offset in partitions.items():
                totals[topic] += max(0, offset - before.get(partition, offset))
            self.positions.setdefault(topic, {}).update(partitions)
        self.status = replace(
            self.status,
            batch=batch,
            batch_at=event["at"],
            batch_ms=event["batch_ms"],
            state_rows=event["state_rows"],
            state_bytes=event["state_bytes"],
            watermark=event["watermark"] or self.status.watermark,
            read=dict(totals),
            batches=self.status.batches + (done if is_new else 0),
            late_rows=self.status.late_rows + (event["late_rows"] if is_new else 0),
        )
        if not self.read and event["began"]:
            self.sample(self.read, event["began"], began_s)
        self.sample(self.read, self.positions, began_s + event["batch_ms"] / 1000 if is_new else now_s)

    def take_ends(self, ends: Offsets, now_s: float) -> None:
        """Takes the current end offsets of the topics, from their brokers."""
        self.ends = ends
        self.sample(self.arrived, ends, now_s)

    def sample(self, samples: deque[Sample], offsets: Offsets, now_s: float) -> None:
        records = sum(sum(each.values()) for each in offsets.values())
        samples.append(Sample(max(now_s, samples[-1].at_s) if samples else now_s, records))
        oldest = now_s - max(RATE_S, 2.5 * self.status.batch_ms / 1000)
        while len(samples) > 2 and samples[1].at_s <= oldest:
            samples.popleft()

    def snapshot(self) -> FlowStatus:
        behind = {
            topic: sum(max(0, end - self.positions.get(topic, {}).get(each, 0)) for each, end in partitions.items())
            for topic, partitions in self.ends.items()
        }
        return replace(
            self.status,
            input_per_s=rate(self.arrived),
            processed_per_s=rate(self.read) if self.positions else self.rows_per_s,
            lag=behind,
            positions=self.positions,
        )


def rate(samples: deque[Sample]) -> float:
    if len(samples) < 2 or samples[-1].at_s <= samples[0].at_s:
        return 0.0
    return max(0, samples[-1].records - samples[0].records) / (samples[-1].at_s - samples[0].at_s)


class StatusModel:
    """Builds the status of a pipeline from events."""

    def __init__(self, status: PipelineStatus) -> None:
        self._status = status
        self._flows: dict[str, FlowModel] = {}
        self._violations: Counter[tuple[str, str, str]] = Counter()
        self._checked: Counter[tuple[str, str, str]] = Counter()

    def change(self, now_s: float, **changes: object) -> None:
        self._status = replace(self._status, updated_s=now_s, **changes)  # type: ignore[arg-type]  # callers name fields of the status

    @property
    def state(self) -> State:
        return self._status.state

    @property
    def last_error(self) -> str | None:
        return self._status.last_error

    def take(self, event: Event, now_s: float) -> None:
        kind = event["kind"]
        if kind == "note":
            self.change(now_s, note=event["text"])
        elif kind == "running":
            for name in event["flows"]:
                flow = self.flow(name)
                flow.reset_after_restart()
                flow.status = replace(flow.status, counts_state_rows=name not in event.get("uncounted", ()))
            self.change(now_s, state=State.RUNNING, running_since_s=now_s, note="", next_try_s=None)
        elif kind == "batch":
            self._take_batch(event)
        elif kind == "progress":
            self.flow(event["flow"]).take_progress(event, now_s)
        elif kind == "ends":
            self.flow(event["flow"]).take_ends(event["offsets"], now_s)
        elif kind == "failed":
            self.change(now_s, last_error=event["error"], last_error_s=now_s)

    def _take_batch(self, event: Event) -> None:
        flow = self.flow(event["flow"])
        written = Counter(flow.status.written)
        written.update(event.get("written", {}))
        unparsed = flow.status.unparsed + event["rejected"]
        flow.status = replace(flow.status, unparsed=unparsed, written=dict(written))
        for each in event["violations"]:
            key = each["step"], each["expectation"], each["otherwise"]
            self._violations[key] += each["rows"]
            self._checked[key] += each.get("checked", 0)

    def flow(self, name: str) -> FlowModel:
        return self._flows.setdefault(name, FlowModel(FlowStatus(name)))

    def snapshot(self, now_s: float) -> PipelineStatus:
        return replace(
            self._status,
            updated_s=now_s,
            flows=tuple(each.snapshot() for each in self._flows.values()),
            expectations=tuple(
                ExpectationStatus(*key, rows, self._checked[key]) for key, rows in sorted(self._violations.items())
            ),
        )
