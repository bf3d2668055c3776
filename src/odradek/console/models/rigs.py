"""The pumps of the rigs example, from the records of its topics: readings, states, warnings, latency. Pure and bounded.

Times are those of the records, so that records that are read later than they were written give the same figures.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from odradek.examples.live_view.definition import Episodes
from odradek.examples.live_view.entity_states import StateMeter
from odradek.examples.live_view.latencies import LatencyMeter
from odradek.examples.live_view.records import SeenRecord, number_of, text_of
from odradek.examples.live_view.tallies import Episode, EpisodeList

if TYPE_CHECKING:
    from collections.abc import Mapping

    from odradek.examples.live_view.definition import ViewDefinition

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
