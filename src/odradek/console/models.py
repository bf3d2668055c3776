"""What the watches keep of a cluster: samples of the last hour, pipelines, and the entities of examples. All of it
is pure and bounded.

Times of entities are those of their records, so that records that are read later than they were written give the same
figures.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterator, Mapping
from dataclasses import field, replace
from typing import Any, NamedTuple

from odradek.conventions.dataclass import dataclass
from odradek.examples.live_view.definition import Content, Episodes, Latency, Readings, States, ViewDefinition
from odradek.examples.live_view.entity_states import StateMeter
from odradek.examples.live_view.latencies import LatencyMeter
from odradek.examples.live_view.records import SeenRecord, number_of, text_of
from odradek.examples.live_view.tallies import EpisodeList
from odradek.pipelines.operating.status_record import PUBLISH_EVERY_S, PublishedPipeline, parse

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
        values = {"input": status.input_per_s, "processed": status.processed_per_s, "batch_ms": status.batch_ms}
        values |= {"state_bytes": float(status.state_bytes)}
        values |= {} if status.lag is None else {"lag": float(status.lag)}
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


MOST_ENTITIES = 1_000
HISTORY_S = 300
UNKNOWN = "not evaluated"


class Point(NamedTuple):
    """The last readings of a second, in the order of their declaration."""

    second: int
    values: tuple[float | None, ...]


@dataclass(slots=True)
class Entity:
    """What reports readings: a pump, a train, a customer."""

    last_s: float = 0.0
    points: deque[Point] = field(default_factory=lambda: deque(maxlen=HISTORY_S))


def parse_record(topic: str, key: bytes | None, value: bytes | None) -> SeenRecord:
    """A record of a followed topic, with its columns parsed."""
    record = SeenRecord(topic, key, value, {})
    _ = record.columns
    return record


class ExampleModel:
    """The entities, episodes and latency of an example, as its `view.yml` declares them. The caller passes records in
    any order of topics, and the present time where a figure depends on it."""

    def __init__(self, view: ViewDefinition) -> None:
        figures = view.figures
        assert view.readings is not None
        assert figures.states is not None
        self.view, self._readings = view, view.readings
        # The readings come without the pipeline, too.
        self._states = StateMeter(replace(figures.states, seen_in=self._readings.topic))
        self._latency = None if figures.latency is None else LatencyMeter(figures.latency)
        self.episodes = next((EpisodeList(each) for each in contents_of(view) if isinstance(each, Episodes)), None)
        self._entities: dict[str, Entity] = {}

    def take(self, record: SeenRecord, time_s: float) -> None:
        if record.topic == self._readings.topic:
            self._take_reading(record, time_s)
        for meter in (self._states, self._latency, self.episodes):
            if meter is not None and record.topic in meter.topics and record.topic != self._readings.topic:
                meter.take(time_s, record)

    def _take_reading(self, record: SeenRecord, time_s: float) -> None:
        values = tuple(number_of(at_path(record.columns, each.column)) for each in self._readings.values)
        if record.key is None or all(each is None for each in values):
            return  # malformed records are part of the examples
        name = text_of(record.key)
        if name not in self._entities and len(self._entities) >= MOST_ENTITIES:
            return
        entity = self._entities.setdefault(name, Entity())
        self._states.take(time_s, record)
        entity.last_s = max(entity.last_s, time_s)
        point = Point(int(time_s), values)
        if not entity.points or entity.points[-1].second < point.second:
            entity.points.append(point)
        elif entity.points[-1].second == point.second:
            entity.points[-1] = point

    def states(self, now_s: float) -> dict[str, str]:
        """The state of each entity: numbers in their order, then other names."""
        found = self._states.states(now_s)
        silent = next((each.name for each in self._states.declared.values if each.lasts_until_seen), UNKNOWN)
        names = sorted(self._entities, key=lambda name: (not name.isdecimal(), len(name) * name.isdecimal(), name))
        silent_before_s = now_s - self._readings.silent_after_s
        return {
            name: silent if self._entities[name].last_s < silent_before_s else found.get(name, self.otherwise)
            for name in names
        }

    @property
    def otherwise(self) -> str:
        return self._states.declared.otherwise

    @property
    def state_names(self) -> list[str]:
        """The usual state first, that of entities that no pipeline evaluates last."""
        return [self.otherwise, *(each.name for each in reversed(self._states.declared.values)), UNKNOWN]

    def color(self, state: str) -> str:
        return "gray" if state == UNKNOWN else self._states.color(state)

    def color_of(self, columns: Mapping[str, Any]) -> str:
        """The color of the state that a record with these columns sets."""
        state = self._states.declared.value_of(str(columns.get(self._states.declared.column)))
        return "gray" if state is None else state.color

    @property
    def noun(self) -> str:
        """What one entity is called: the title of its column in the episodes."""
        columns = [] if self.episodes is None else self.episodes.declared.columns
        return next((title for title, column in columns if column == self._states.declared.key), "")

    def points_since(self, name: str, second: int) -> list[Point]:
        entity = self._entities.get(name)
        return [] if entity is None else [point for point in entity.points if point.second > second]

    def latency_ms(self, now_s: float) -> dict[str, Any]:
        """The latency in the last minute, and whether the pipeline is warming up."""
        if self._latency is None:
            return {"is_of_warm_up": False}
        return {**self._latency.last_minute_ms(now_s), "is_of_warm_up": self._latency.is_of_warm_up}


def contents_of(view: ViewDefinition) -> list[Content]:
    return [panel.content for panel in view.panels]


def followed_topics(view: ViewDefinition) -> list[str]:
    """The topics of a page: first that of the readings."""
    figures = view.figures
    declared = (view.readings, figures.states, figures.latency, *contents_of(view))
    kinds = (Readings, States, Latency, Episodes)
    return list(dict.fromkeys(each.topic for each in declared if isinstance(each, kinds)))


def at_path(columns: Mapping[str, Any], path: str) -> Any:
    """The value at a path of fields with dots between them; None if there is none."""
    found: Any = columns
    for name in path.split("."):
        found = found.get(name) if isinstance(found, Mapping) else None
    return found
