"""The model of a live view, as declared in `view.yml`: a title and panels."""

from __future__ import annotations

from enum import StrEnum
from fnmatch import fnmatchcase

from odradek.conventions.dataclass import dataclass


class Side(StrEnum):
    """The column of a panel on a wide terminal."""

    LEFT = "left"
    RIGHT = "right"


@dataclass(frozen=True, slots=True)
class Topics:
    """Records, rates and the last minute of each topic; the first is the input."""

    topics: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Latency:
    """The time from a moment named in a column until the record is received. The warm-up does not count."""

    topic: str
    since: str
    title: str
    warm_up_s: float


@dataclass(frozen=True, slots=True)
class Lag:
    """Records of a topic without an output. Outputs name partition and offset of their input in headers."""

    topic: str
    seen_in: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class StateValue:
    """A state that an entity gets when the column matches one of the patterns."""

    name: str
    patterns: tuple[str, ...]
    color: str
    lasts_until_seen: bool

    def matches(self, text: str) -> bool:
        return any(fnmatchcase(text, pattern) for pattern in self.patterns)


@dataclass(frozen=True, slots=True)
class States:
    """States of entities: the keys of `seen_in` are the entities, the records of `topic` set their states."""

    entities: str
    seen_in: str
    topic: str
    key: str
    column: str
    lasts_s: float
    otherwise: str
    values: tuple[StateValue, ...]  # the first that applies counts

    def value_of(self, text: str) -> StateValue | None:
        return next((value for value in self.values if value.matches(text)), None)


@dataclass(frozen=True, slots=True)
class Total:
    """The sum of a column over the records of a topic; without a column, their number."""

    title: str
    topic: str
    column: str | None


@dataclass(frozen=True, slots=True)
class Figures:
    latency: Latency | None = None
    lag: Lag | None = None
    states: States | None = None
    totals: tuple[Total, ...] = ()


@dataclass(frozen=True, slots=True)
class Episodes:
    """One line for each key of a topic while its records repeat. `columns` are pairs of a title and a column."""

    topic: str
    key: tuple[str, ...]
    columns: tuple[tuple[str, str], ...]
    since: str | None
    ends_after_s: float


@dataclass(frozen=True, slots=True)
class Counts:
    """The number of records of a topic by a column, or by a header without its details after a colon."""

    topic: str
    column: str | None
    header: str | None


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of a view or table of the pipeline. `columns` are pairs of a title and a column."""

    view: str
    columns: tuple[tuple[str, str], ...]
    order_by: str | None
    is_descending: bool


@dataclass(frozen=True, slots=True)
class Chart:
    """The rate of a topic over the last minute."""

    topic: str


Content = Topics | Figures | Episodes | Counts | Rows | Chart


@dataclass(frozen=True, slots=True)
class Panel:
    title: str
    content: Content
    side: Side


@dataclass(frozen=True, slots=True)
class Reading:
    """A number of an entity, at a path of fields in its records, and the limits that its chart shows."""

    title: str
    column: str
    unit: str
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Readings:
    """The numbers that the entities report, which the console draws for one of them. Keys of records are entities."""

    topic: str
    silent_after_s: float
    values: tuple[Reading, ...]


@dataclass(frozen=True, slots=True)
class ViewDefinition:
    title: str
    panels: tuple[Panel, ...]
    readings: Readings | None = None  # with states, the example has a page in the console

    @property
    def figures(self) -> Figures:
        """The figures of all panels; of several latencies, lags or states the first."""
        every = [panel.content for panel in self.panels if isinstance(panel.content, Figures)]
        return Figures(
            next((each.latency for each in every if each.latency), None),
            next((each.lag for each in every if each.lag), None),
            next((each.states for each in every if each.states), None),
            tuple(total for each in every for total in each.totals),
        )

    @property
    def output(self) -> str:
        """The topic that shows best what the pipeline does: the one whose latency is measured, or the last."""
        latency = self.figures.latency
        return self.topics[-1] if latency is None else latency.topic

    @property
    def topics(self) -> tuple[str, ...]:
        """The topics that are counted, the input first."""
        named = [topic for panel in self.panels if isinstance(panel.content, Topics) for topic in panel.content.topics]
        named += [panel.content.topic for panel in self.panels if isinstance(panel.content, Chart)]
        lag = self.figures.lag
        return tuple(dict.fromkeys([*named, *([] if lag is None else [lag.topic])]))
