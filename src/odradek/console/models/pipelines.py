"""The pipelines that publish their status, with samples of their figures. Pure and bounded."""

from __future__ import annotations

from collections import OrderedDict, deque
from dataclasses import dataclass, field
from typing import NamedTuple

from odradek.console.models.history import Sample, Samples
from odradek.pipelines.operating.status_record import PUBLISH_EVERY_S, PublishedPipeline, parse

MOST_PIPELINES = 300
RATE_SAMPLES = 8  # rates of sinks are means over so many statuses

__all__ = ["PublishedPipeline"]


@dataclass(slots=True)
class KnownPipeline:
    published: PublishedPipeline
    samples: Samples = field(default_factory=lambda: Samples(PUBLISH_EVERY_S))
    written: deque[tuple[float, dict[str, int]]] = field(default_factory=lambda: deque(maxlen=RATE_SAMPLES))

    def take(self, published: PublishedPipeline) -> None:
        status = published.status
        if published.published_s < self.published.published_s:
            return
        is_new = status.updated_s > self.published.status.updated_s or not len(self.samples)
        self.published = published
        if not is_new:
            return
        written: dict[str, int] = {}
        for flow in status.flows:
            for name, rows in flow.written.items():
                written[name] = written.get(name, 0) + rows
        if self.written and any(written.get(name, 0) < rows for name, rows in self.written[-1][1].items()):
            self.written.clear()  # it was started again
        self.written.append((status.updated_s, written))
        values = {
            "input": status.input_per_s,
            "processed": status.processed_per_s,
            "batch_ms": status.batch_ms,
            "state_bytes": float(status.state_bytes),
        }
        if status.lag is not None:
            values["lag"] = float(status.lag)
        self.samples.add(Sample(status.updated_s, values))

    @property
    def written_per_s(self) -> dict[str, float]:
        """Rows per second by sink or view."""
        if len(self.written) < 2:
            return {}
        (from_s, before), (to_s, after) = self.written[0], self.written[-1]
        seconds = to_s - from_s
        return {name: (rows - before.get(name, 0)) / seconds for name, rows in after.items()} if seconds > 0 else {}


class StatusUpdate(NamedTuple):
    """A record of the status topic; without a status, the pipeline is removed."""

    key: str
    published: PublishedPipeline | None


def parse_update(key: bytes | None, value: bytes | None) -> StatusUpdate | None:
    """None for a record that is not a status."""
    name = (key or b"").decode(errors="replace")
    if value is None:
        return StatusUpdate(name, None)
    published = parse(value)
    return None if published is None or published.key != name else StatusUpdate(name, published)


class Pipelines:
    """By the key of their records. Beyond the limit, the one that was heard from least recently is dropped."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, KnownPipeline] = OrderedDict()

    def take(self, update: StatusUpdate) -> None:
        name, published = update
        if published is None:
            self._known.pop(name, None)
            return
        known = self._known.get(name)
        if known is None:
            known = self._known[name] = KnownPipeline(published)
            if len(self._known) > MOST_PIPELINES:
                self._known.popitem(last=False)
        self._known.move_to_end(name)
        known.take(published)

    def all(self) -> list[KnownPipeline]:
        return sorted(self._known.values(), key=lambda each: each.published.key)

    def get(self, key: str) -> KnownPipeline | None:
        return self._known.get(key)
