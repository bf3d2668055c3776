"""The figures of a live view, from the records and end offsets that the caller passes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from odradek.examples.live_view.definition import Counts, Episodes, Rows
from odradek.examples.live_view.entity_states import StateMeter
from odradek.examples.live_view.lag import LagMeter
from odradek.examples.live_view.latencies import LatencyMeter
from odradek.examples.live_view.tallies import CountTable, EpisodeList, TotalCounter
from odradek.examples.live_view.topic_counts import TopicCounts

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from odradek.examples.live_view.definition import ViewDefinition
    from odradek.examples.live_view.records import SeenRecord


class Meter(Protocol):
    @property
    def topics(self) -> tuple[str, ...]: ...

    def take(self, now_s: float, record: SeenRecord, /) -> None: ...


class LiveViewModel:
    """Times are wall-clock seconds, because latencies are differences to times in records."""

    def __init__(self, view: ViewDefinition, now_s: float) -> None:
        self.view = view
        self.began_s = now_s
        self.is_broker_unreachable = False
        self.read_failure = ""  # of a partition that is left out
        self.topics = TopicCounts(view.topics)
        figures = view.figures
        self.lag = None if figures.lag is None else LagMeter(figures.lag, self.topics)
        self.latency = None if figures.latency is None else LatencyMeter(figures.latency)
        self.states = None if figures.states is None else StateMeter(figures.states)
        self.totals = [TotalCounter(total) for total in figures.totals]
        self.tables: dict[str, EpisodeList | CountTable] = {}  # by the title of the panel
        self.rows: dict[str, Sequence[Sequence[Any]] | None] = {}  # by the title of the panel; None: not read yet
        for panel in view.panels:
            match panel.content:
                case Episodes() as episodes:
                    self.tables[panel.title] = EpisodeList(episodes)
                case Counts() as counts:
                    self.tables[panel.title] = CountTable(counts)
                case Rows():
                    self.rows[panel.title] = None
        self._meters: dict[str, list[Meter]] = {}
        every: list[Meter | None] = [self.lag, self.latency, self.states, *self.totals, *self.tables.values()]
        for meter in every:
            for topic in () if meter is None else dict.fromkeys(meter.topics):
                assert meter is not None
                self._meters.setdefault(topic, []).append(meter)

    @property
    def followed(self) -> tuple[str, ...]:
        """The topics whose records are read."""
        return tuple(self._meters)

    @property
    def input(self) -> str:
        return self.topics.topics[0]

    @property
    def has_output(self) -> bool:
        return any(self.topics.total(topic) for topic in self.topics.topics[1:])

    def take(self, now_s: float, record: SeenRecord) -> None:
        for meter in self._meters.get(record.topic, ()):
            meter.take(now_s, record)

    def take_ends(self, now_s: float, ends: Mapping[str, Mapping[int, int]]) -> None:
        self.topics.take_ends(now_s, ends)
        if self.lag is not None:
            self.lag.take_ends()
