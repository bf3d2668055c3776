"""What the watches keep of a cluster: samples of the last hour, pipelines, and the pumps of the rigs example. All of it
is pure and bounded.

Times of pumps are those of their records, so that records that are read later than they were written give the same
figures.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from odradek.examples.live_view.definition import Episodes
from odradek.examples.live_view.entity_states import StateMeter
from odradek.examples.live_view.latencies import LatencyMeter
from odradek.examples.live_view.records import SeenRecord, number_of, text_of
from odradek.examples.live_view.tallies import Episode, EpisodeList
from odradek.pipelines.operating.status_record import PUBLISH_EVERY_S, PublishedPipeline, parse

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from odradek.examples.live_view.definition import ViewDefinition

HOUR_S = 3600
BUCKET_S = 10.0
SET_BACK_S = 60.0


class Sample(NamedTuple):
    """Values at one moment, by the name of the chart that shows them."""

    time_s: float
    values: Mapping[str, float]


class Samples:
    """The samples of an hour. Each has a number, so that a reader finds those that it has not seen."""

    def __init__(self, interval_s: float) -> None:
        self._ring: deque[Sample] = deque(maxlen=max(1, round(HOUR_S / interval_s)))
        self.count = 0  # of all samples, those that were dropped included

    def __len__(self) -> int:
        return len(self._ring)

    def add(self, sample: Sample) -> None:
        """A clock that was set back by a minute or more begins another history: times in a chart rise."""
        if self._ring and sample.time_s <= self._ring[-1].time_s - SET_BACK_S:
            self._ring.clear()
        self._ring.append(sample)
        self.count += 1

    def since(self, count: int) -> list[Sample]:
        """The samples that were added after the first `count`, as far as they are kept."""
        new = min(self.count - count, len(self._ring))
        return list(self._ring)[len(self._ring) - new :] if new > 0 else []


class Series:
    """Means of buckets of ten seconds, by name. Beyond `names`, the name that was changed least recently is dropped."""

    def __init__(self, names: int, points: int = int(HOUR_S / BUCKET_S)) -> None:
        self._names = names
        self._points = points
        self._rings: OrderedDict[str, deque[tuple[int, float, int]]] = OrderedDict()  # bucket, sum, number of values

    def __iter__(self) -> Iterator[str]:
        return iter(self._rings)

    def __len__(self) -> int:
        return len(self._rings)

    def add(self, name: str, time_s: float, value: float) -> None:
        ring = self._rings.get(name)
        if ring is None:
            ring = self._rings[name] = deque(maxlen=self._points)
            if len(self._rings) > self._names:
                self._rings.popitem(last=False)
        self._rings.move_to_end(name)
        bucket = int(time_s // BUCKET_S)
        if ring and ring[-1][0] == bucket:
            _, total, number = ring.pop()
            ring.append((bucket, total + value, number + 1))
        else:
            ring.append((bucket, value, 1))

    def has(self, name: str) -> bool:
        return name in self._rings

    def forget(self, name: str) -> None:
        self._rings.pop(name, None)

    def points(self, name: str, now_s: float, points: int = 60) -> list[float | None]:
        """The last buckets up to now; None where there is no value."""
        ring = self._rings.get(name)
        if ring is None:
            return []
        known = {bucket: total / number for bucket, total, number in list(ring)}
        last = int(now_s // BUCKET_S)
        return [known.get(bucket) for bucket in range(last - points + 1, last + 1)]


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


StatusUpdate = tuple[str, PublishedPipeline | None]  # of the pipeline with this key; without a status, it is removed


def parse_update(key: bytes | None, value: bytes | None) -> StatusUpdate | None:
    """None for a record that is not a status."""
    name = (key or b"").decode(errors="replace")
    if value is None:
        return name, None
    published = parse(value)
    return None if published is None or published.key != name else (name, published)


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


READINGS, WARNINGS, DEAD_LETTERS = "rigs", "warnings", "rigs-dead-letters"
FOLLOWED = (READINGS, WARNINGS)
MOST_PUMPS = 1_000
HISTORY_S = 300
SILENT_AFTER_S = 45.0  # the pipeline warns earlier; this holds without it
SILENT = "silent"
# Limits of the readings, as the example's pipeline has them.
LIMITS: Mapping[str, tuple[float, float]] = {"pressure": (60.0, 150.0), "temperature": (-20.0, 75.0)}


class Point(NamedTuple):
    """The last reading of a second."""

    second: int
    pressure: float | None
    temperature: float | None


@dataclass(slots=True)
class Pump:
    id: str
    last_s: float = 0.0
    points: deque[Point] = field(default_factory=lambda: deque(maxlen=HISTORY_S))


def parse_record(topic: str, key: bytes | None, value: bytes | None) -> SeenRecord:
    """A record of a followed topic, with its columns parsed."""
    record = SeenRecord(topic, key, value, {})
    _ = record.columns
    return record


class RigModel:
    """The caller passes records in any order of topics, and the present time where a figure depends on it."""

    def __init__(self, view: ViewDefinition) -> None:
        states, latency = view.figures.states, view.figures.latency
        episodes = next(panel.content for panel in view.panels if isinstance(panel.content, Episodes))
        assert states is not None
        assert latency is not None
        self._states = StateMeter(replace(states, seen_in=READINGS))  # the readings come without the pipeline, too
        self._latency = LatencyMeter(latency)
        self._warnings = EpisodeList(episodes)
        self._pumps: dict[str, Pump] = {}

    def take(self, record: SeenRecord, time_s: float) -> None:
        if record.topic == READINGS:
            self._take_reading(record, time_s)
        elif record.topic == WARNINGS:
            self._states.take(time_s, record)
            self._latency.take(time_s, record)
            self._warnings.take(time_s, record)

    def _take_reading(self, record: SeenRecord, time_s: float) -> None:
        readings = record.columns.get("sensor_readings")
        if record.key is None or not isinstance(readings, dict):
            return  # malformed records are part of the example
        name = text_of(record.key)
        pump = self._pumps.get(name)
        if pump is None:
            if len(self._pumps) >= MOST_PUMPS:
                return
            pump = self._pumps[name] = Pump(name)
        self._states.take(time_s, record)
        pump.last_s = max(pump.last_s, time_s)
        point = Point(int(time_s), number_of(readings.get("pressure")), number_of(readings.get("temperature")))
        if pump.points and pump.points[-1].second >= point.second:
            if pump.points[-1].second == point.second:
                pump.points[-1] = point
        else:
            pump.points.append(point)

    def pumps(self) -> list[str]:
        """Numbers in their order, then other names."""
        return sorted(self._pumps, key=lambda name: (not name.isdecimal(), len(name) if name.isdecimal() else 0, name))

    def states(self, now_s: float) -> dict[str, str]:
        """The state of each pump."""
        found = self._states.states(now_s)
        return {
            name: SILENT if now_s - pump.last_s > SILENT_AFTER_S else found.get(name, self.otherwise)
            for name, pump in self._pumps.items()
        }

    @property
    def otherwise(self) -> str:
        return self._states.declared.otherwise

    def points_since(self, name: str, second: int) -> list[Point]:
        pump = self._pumps.get(name)
        return [] if pump is None else [point for point in pump.points if point.second > second]

    def latest_warnings(self, number: int) -> list[Episode]:
        return self._warnings.latest(number)

    def latency_ms(self, now_s: float) -> dict[str, Any]:
        """The time from a reading to its warning in the last minute, and whether the pipeline is warming up."""
        return {**self._latency.last_minute_ms(now_s), "is_of_warm_up": self._latency.is_of_warm_up}
