"""The figures of the dashboard: rates, lag, latencies, states of pumps. Pure: the caller passes records and times."""

from __future__ import annotations

from collections import Counter, OrderedDict, deque
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from odradek.pipelines.rigs.dashboard_records import Source, WarningRecord

RATE_OVER_S = 5.0
HISTORY_S = 60.0
LATENCY_OVER_S = 60.0
CURRENT_S = 30.0  # an episode ends when its warning is not repeated for this long
MOST_LATENCIES = 50_000
MOST_PUMPS = 10_000
MOST_EPISODES = 500
MOST_REASONS = 50
SILENT_RULE = "silent"
RISING_WORD = "rising"


@dataclass(frozen=True, slots=True)
class Topics:
    """The names of the pipeline's input and output topics."""

    source: str = "rigs"
    pressure: str = "pressure"
    temperature: str = "temperature"
    warnings: str = "warnings"
    dead_letters: str = "rigs-dead-letters"

    @property
    def all(self) -> tuple[str, ...]:
        return (self.source, self.pressure, self.temperature, self.warnings, self.dead_letters)


class PumpState(StrEnum):
    CALM = "calm"
    RISING = "rising"
    OVER_LIMIT = "over limit"
    SILENT = "silent"


@dataclass(slots=True)
class Episode:
    """A period in which a pump violates a rule, from the first warning to the last."""

    pump: str
    rule: str
    began_s: float
    last_s: float
    times: int = 0
    value: float | None = None
    bound: float | None = None
    latency_ms: float | None = None


@dataclass(slots=True)
class PumpActivity:
    """A pump's last record, and its last warning by state."""

    last_s: float
    warned_s: dict[PumpState, float] = field(default_factory=dict)

    def state(self, now_s: float) -> PumpState:
        if self.warned_s.get(PumpState.SILENT, -1.0) > self.last_s:
            return PumpState.SILENT
        for state in (PumpState.OVER_LIMIT, PumpState.RISING):
            if now_s - self.warned_s.get(state, float("-inf")) <= CURRENT_S:
                return state
        return PumpState.CALM


class DashboardModel:
    """The dashboard's figures. Times are wall-clock seconds, because latencies are differences to times in records."""

    def __init__(self, topics: Topics, now_s: float) -> None:
        self.topics = topics
        self.began_s = now_s
        self.is_broker_unreachable = False
        self.episodes: OrderedDict[tuple[str, str], Episode] = OrderedDict()
        self.rules: Counter[str] = Counter()
        self.reasons: Counter[str] = Counter()
        self.greatest_lag = 0
        self._first_ends: dict[str, dict[int, int]] = {}
        self._ends: dict[str, dict[int, int]] = {}
        self._totals: deque[tuple[float, dict[str, int]]] = deque()
        self._progress: dict[int, int] = {}
        self._pumps: dict[str, PumpActivity] = {}
        self._latencies: deque[tuple[float, float]] = deque(maxlen=MOST_LATENCIES)

    def take_ends(self, now_s: float, ends: Mapping[str, Mapping[int, int]]) -> None:
        """Takes end offsets by topic and partition. All records of a topic that appears after the first call count."""
        for topic, partitions in ends.items():
            first = self._first_ends.setdefault(topic, dict(partitions) if not self._totals else {})
            for partition, end in partitions.items():
                first.setdefault(partition, 0)
                self._ends.setdefault(topic, {})[partition] = end
        for partition, end in self._first_ends.get(self.topics.source, {}).items():
            self._progress.setdefault(partition, end)
        self._totals.append((now_s, {topic: self.total(topic) for topic in self.topics.all}))
        while now_s - self._totals[0][0] > HISTORY_S:
            self._totals.popleft()
        self.greatest_lag = max(self.greatest_lag, self.lag)

    def take_reading(self, now_s: float, pump: str, source: Source | None) -> None:
        """Takes a record of the topic `pressure`, which has one for every valid input record."""
        activity = self._pumps.get(pump)
        if activity is not None:
            activity.last_s = now_s
        elif len(self._pumps) < MOST_PUMPS:
            self._pumps[pump] = PumpActivity(now_s)
        self._take_source(source)

    def take_warning(self, now_s: float, warned: WarningRecord) -> None:
        self.rules[warned.rule if warned.rule in self.rules or len(self.rules) < MOST_REASONS else "others"] += 1
        latency_ms = None if warned.reported_s is None else max(0.0, now_s - warned.reported_s) * 1000
        if latency_ms is not None:
            self._latencies.append((now_s, latency_ms))
        key = (warned.pump, warned.rule)
        episode = self.episodes.get(key)
        if episode is None or now_s - episode.last_s > CURRENT_S:
            episode = self.episodes[key] = Episode(*key, now_s, now_s)
            self.episodes.move_to_end(key)
            if len(self.episodes) > MOST_EPISODES:
                self.episodes.popitem(last=False)
        episode.times += 1
        episode.last_s, episode.latency_ms = now_s, latency_ms
        episode.value, episode.bound = warned.value, warned.bound
        if (activity := self._pumps.get(warned.pump)) is not None:
            activity.warned_s[state_of_rule(warned.rule)] = now_s

    def take_dead_letter(self, reason: str, source: Source | None) -> None:
        self.reasons[reason if reason in self.reasons or len(self.reasons) < MOST_REASONS else "others"] += 1
        self._take_source(source)

    def _take_source(self, source: Source | None) -> None:
        if source is not None:
            partition, offset = source
            self._progress[partition] = max(self._progress.get(partition, 0), offset + 1)

    def total(self, topic: str) -> int:
        """The number of records written to the topic since the dashboard started."""
        first = self._first_ends.get(topic, {})
        return sum(end - first[partition] for partition, end in self._ends.get(topic, {}).items())

    def rate(self, topic: str, now_s: float) -> float:
        """The rate of the last seconds, in records per second."""
        recent = [(at_s, totals[topic]) for at_s, totals in self._totals if now_s - at_s <= RATE_OVER_S]
        if len(recent) < 2 or recent[-1][0] <= recent[0][0]:
            return 0.0
        return (recent[-1][1] - recent[0][1]) / (recent[-1][0] - recent[0][0])

    def rate_history(self, topic: str, now_s: float, columns: int) -> list[float]:
        """The rate in each part of the last minute, oldest first."""
        width_s = HISTORY_S / columns
        last: dict[int, tuple[float, int]] = {}  # the last sample in each part
        for at_s, totals in self._totals:
            last[columns - 1 - int((now_s - at_s) / width_s)] = (at_s, totals[topic])
        rates = [0.0] * columns
        for (_, (from_s, before)), (index, (to_s, after)) in pairwise(sorted(last.items())):
            if 0 <= index < columns:
                rates[index] = max(0, after - before) / (to_s - from_s)
        return rates

    @property
    def lag(self) -> int:
        """Input records without a seen output. Records from before the start of the dashboard count as done."""
        ends = self._ends.get(self.topics.source, {})
        return sum(max(0, end - self._progress.get(partition, end)) for partition, end in ends.items())

    def lag_s(self, now_s: float) -> float | None:
        """The lag in seconds, estimated from the input rate."""
        rate = self.rate(self.topics.source, now_s)
        return self.lag / rate if rate else None

    def latencies_ms(self, now_s: float) -> dict[str, float]:
        """The p50, p99 and maximum latency from event to alert in the last minute; empty without alerts."""
        return percentiles([latency for at_s, latency in self._latencies if now_s - at_s <= LATENCY_OVER_S])

    def all_latencies_ms(self) -> dict[str, float]:
        return percentiles([latency for _at_s, latency in self._latencies])

    def pump_states(self, now_s: float) -> dict[PumpState, int]:
        found = Counter(activity.state(now_s) for activity in self._pumps.values())
        return {state: found[state] for state in PumpState}

    def latest_episodes(self, number: int) -> list[Episode]:
        """Episodes by their first warning, newest first, so that a continuing episode keeps its position."""
        return list(reversed(self.episodes.values()))[:number]


def state_of_rule(rule: str) -> PumpState:
    if rule == SILENT_RULE:
        return PumpState.SILENT
    return PumpState.RISING if rule.endswith(RISING_WORD) else PumpState.OVER_LIMIT


def percentiles(values: Sequence[float]) -> dict[str, float]:
    ordered = sorted(values)
    if not ordered:
        return {}
    named = {name: ordered[min(len(ordered) - 1, int(share * len(ordered)))] for name, share in SHARES.items()}
    return {**named, "max": ordered[-1]}


SHARES = {"p50": 0.5, "p99": 0.99}
