"""The model of a simulation, as declared in `simulator.yml`: immutable values without places."""

from __future__ import annotations

from dataclasses import field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from odradek.conventions.dataclass import dataclass

if TYPE_CHECKING:
    from odradek.examples.declared_fields import Span
    from odradek.examples.simulator.template import Template


class Distribution(StrEnum):
    UNIFORM = "uniform"  # from, to
    NORMAL = "normal"  # mean, standard deviation
    LOGNORMAL = "lognormal"  # median, standard deviation of the logarithm
    EXPONENTIAL = "exponential"  # mean


@dataclass(frozen=True, slots=True)
class Walk:
    """A value that varies around the level of its entity (an Ornstein-Uhlenbeck process)."""

    level: Span
    spread: float
    settles_s: float


@dataclass(frozen=True, slots=True)
class Draw:
    """A value that is drawn for each record."""

    distribution: Distribution
    parameters: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """One of several values, drawn for each record or once for each entity."""

    options: tuple[str | int | float, ...]
    weights: tuple[float, ...]
    is_per_entity: bool


@dataclass(frozen=True, slots=True)
class Total:
    """A running total: each record adds multiples of other signals; below `refill_below` it is filled up again."""

    starts: Span
    adds: tuple[tuple[str, float], ...]
    refill_below: float | None
    refill: Span | None


@dataclass(frozen=True, slots=True)
class Signal:
    """A named value of each record. `day`, `noise`, `states`, `bounds` and `decimals` apply to numbers."""

    name: str
    source: Walk | Draw | Choice | Total
    day: float = 0.0
    noise: float = 0.0
    states: tuple[tuple[str, float], ...] = ()
    bounds: Span | None = None
    decimals: int = 0

    @property
    def is_text(self) -> bool:
        return isinstance(self.source, Choice) and any(isinstance(each, str) for each in self.source.options)


class Change(StrEnum):
    """How a fault changes a signal."""

    PER_MINUTE = "per_minute"  # added, growing by so much each minute
    DOUBLES_EVERY = "doubles_every"  # added, doubling in this time
    ADD = "add"  # added at once
    TIMES = "times"  # multiplied
    OF = "of"  # added: a multiple of what the fault adds to another signal
    BECOMES = "becomes"  # replaced by one of these values


@dataclass(frozen=True, slots=True)
class Effect:
    """The effect of a fault on one signal. The strength of a fault places it between the ends of `size`."""

    signal: str
    change: Change
    size: Span | None = None
    most: float | None = None
    other: str = ""
    factor: float = 1.0
    values: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True)
class FaultKind:
    """A kind of fault. `records` is how many records an entity sends at each of its turns: 0 is silence."""

    name: str
    lasts: Span
    effects: tuple[Effect, ...] = ()
    records: int = 1
    weight: int = 1


@dataclass(frozen=True, slots=True)
class Faults:
    """Faults of each entity: the mean time between them, their kinds, and how fast an effect fades at the end."""

    every_s: float
    recovery_s: float
    kinds: tuple[FaultKind, ...]

    @property
    def mean_duration_s(self) -> float:
        weights = sum(kind.weight for kind in self.kinds)
        return sum(kind.lasts.middle * kind.weight for kind in self.kinds) / weights


@dataclass(frozen=True, slots=True)
class EntityState:
    """A state of an entity, such as asleep: how long it lasts, and which state follows with which weight."""

    name: str
    lasts: Span
    following: tuple[tuple[str, float], ...]


@dataclass(frozen=True, slots=True)
class Day:
    """The daily cycle: when it is at its highest, and how much entities differ in that."""

    peak_s: float
    shift_s: float


class Spoil(StrEnum):
    """What a flaw does to a record."""

    CUT = "cut"
    EMPTY = "empty"
    NOISE = "noise_bytes"
    REMOVE = "remove"
    REPLACE = "replace"


@dataclass(frozen=True, slots=True)
class FlawKind:
    name: str
    weight: float
    spoil: Spoil
    fields: tuple[tuple[str, ...], ...] = ()
    values: tuple[Any, ...] = ()
    size_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Flaws:
    """Shares of all records: late ones, ones that are sent twice, malformed ones."""

    late_share: float = 0.0
    late_by: Span | None = None
    duplicate_share: float = 0.0
    malformed_share: float = 0.0
    kinds: tuple[FlawKind, ...] = ()


@dataclass(frozen=True, slots=True)
class Simulation:
    """Entities, their signals and faults, and the records that they send."""

    topic: str
    entity: str  # what one entity is called
    count: int
    first_id: int
    key: Template
    value: Template
    signals: tuple[Signal, ...]
    partitions: int = 1
    rate: float = 100.0
    seed: int = 1
    day: Day | None = None
    states: tuple[EntityState, ...] = ()
    faults: Faults | None = None
    flaws: Flaws = field(default_factory=Flaws)
