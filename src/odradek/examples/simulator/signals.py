"""The signals of one entity: values that walk, are drawn, chosen or summed up, with a daily cycle, noise and bounds.

Pure: the entity's random generator is passed in, and the same draws give the same values.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from odradek.examples.simulator.model import Choice, Distribution, Draw, Signal, Total, Walk

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from random import Random

    from odradek.examples.simulator.faults import Changed

Values = dict[str, Any]


class LiveSignal(ABC):
    """A signal of one entity. `read` is called once for each record, in the order of the declaration."""

    def __init__(self, declared: Signal) -> None:
        self.name = declared.name
        self._day = declared.day
        self._noise = declared.noise
        self._states = dict(declared.states)
        self._decimals = declared.decimals or None  # None: round to an integer
        bounds = declared.bounds
        self._least, self._most = (-math.inf, math.inf) if bounds is None else (bounds.low, bounds.high)

    @abstractmethod
    def read(self, day: float, state: str, changed: Changed | None, values: Values) -> Any: ...

    def number(
        self, base: float, day: float, state: str, changed: Changed | None, chance: Random
    ) -> float:  # fmt: skip
        """The number with everything that is added to it, rounded and within its bounds."""
        value = base + self._day * day
        if self._states:
            value += self._states.get(state, 0.0)
        if changed is not None:
            value = (value + changed.added) * changed.factor
        if self._noise:
            value += chance.gauss(0, self._noise)
        return min(self._most, max(self._least, round(value, self._decimals)))


class WalkSignal(LiveSignal):
    def __init__(self, declared: Signal, walk: Walk, chance: Random) -> None:
        super().__init__(declared)
        self._chance = chance
        self._level = walk.level.at(chance.random())
        self._spread = walk.spread
        self._deviation = chance.gauss(0, walk.spread)

    def advance(self, kept: float, moved: float) -> None:
        """Keeps a share of the deviation from the level, and adds a share of a new one."""
        self._deviation = kept * self._deviation + self._spread * moved * self._chance.gauss(0, 1)

    def read(self, day: float, state: str, changed: Changed | None, values: Values) -> Any:  # noqa: ARG002 - depends on no other signal
        return self.number(self._level + self._deviation, day, state, changed, self._chance)


class DrawnSignal(LiveSignal):
    def __init__(self, declared: Signal, draw: Draw, chance: Random) -> None:
        super().__init__(declared)
        self._chance = chance
        self._draw = drawing(draw, chance)

    def read(self, day: float, state: str, changed: Changed | None, values: Values) -> Any:  # noqa: ARG002 - depends on no other signal
        return self.number(self._draw(), day, state, changed, self._chance)


class ChosenSignal(LiveSignal):
    def __init__(self, declared: Signal, choice: Choice, chance: Random) -> None:
        super().__init__(declared)
        self._choice = choice
        self._chance = chance
        self._kept = self._choose() if choice.is_per_entity else None

    def _choose(self) -> str | int | float:
        return self._chance.choices(self._choice.options, self._choice.weights)[0]

    def read(self, day: float, state: str, changed: Changed | None, values: Values) -> Any:  # noqa: ARG002 - not a number
        if changed is not None and changed.replacement is not None:
            return changed.replacement
        return self._choose() if self._kept is None else self._kept


class TotalSignal(LiveSignal):
    def __init__(self, declared: Signal, total: Total, chance: Random) -> None:
        super().__init__(declared)
        self._declared = total
        self._chance = chance
        self._total = total.starts.at(chance.random())

    def read(self, day: float, state: str, changed: Changed | None, values: Values) -> Any:
        total = self._declared
        self._total += sum(factor * (values[name] if name else 1) for name, factor in total.adds)
        if total.refill is not None and total.refill_below is not None and self._total < total.refill_below:
            self._total += total.refill.at(self._chance.random())
        return self.number(self._total, day, state, changed, self._chance)


def live(declared: Signal, chance: Random) -> LiveSignal:
    """The signal of an entity with this random generator."""
    match declared.source:
        case Walk() as walk:
            return WalkSignal(declared, walk, chance)
        case Draw() as draw:
            return DrawnSignal(declared, draw, chance)
        case Choice() as choice:
            return ChosenSignal(declared, choice, chance)
        case Total() as total:
            return TotalSignal(declared, total, chance)


def drawing(draw: Draw, chance: Random) -> Callable[[], float]:
    first, *rest = draw.parameters
    makers: Mapping[Distribution, Callable[[], float]] = {
        Distribution.UNIFORM: lambda: chance.uniform(first, rest[0]),
        Distribution.NORMAL: lambda: chance.gauss(first, rest[0]),
        Distribution.LOGNORMAL: lambda: first * math.exp(chance.gauss(0, rest[0])),
        Distribution.EXPONENTIAL: lambda: chance.expovariate(1 / first),
    }
    return makers[draw.distribution]
