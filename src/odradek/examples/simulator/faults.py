"""Faults of an entity: signals that rise, double, jump or are replaced, or records that fail to come or come in bursts.

A fault is a function of time: its effect can be computed for any time, including the past.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from odradek.conventions.dataclass import dataclass
from odradek.examples.simulator.model import Change, Effect, FaultKind, Faults

if TYPE_CHECKING:
    from random import Random

RECOVERIES = 6  # a fault is over when its effect has faded for so many recovery times
MOST_DOUBLINGS = 8.0


@dataclass(frozen=True, slots=True)
class Changed:
    """What a fault does to a signal at a time: `(value + added) * factor`, or another value."""

    added: float = 0.0
    factor: float = 1.0
    replacement: Any = None


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault of an entity. `strength`, from 0 to 1, places every effect between the ends of its range."""

    kind: FaultKind
    began_s: float
    lasts_s: float
    strength: float
    recovery_s: float

    @property
    def ends_s(self) -> float:
        return self.began_s + self.lasts_s

    def is_active(self, time_s: float) -> bool:
        return self.began_s <= time_s < self.ends_s

    def records(self, time_s: float) -> int:
        return self.kind.records if self.is_active(time_s) else 1

    def changes(self, time_s: float) -> dict[str, Changed]:
        """The changes of signals at a time, by their names."""
        found: dict[str, Changed] = {}
        for effect in self.kind.effects:
            found[effect.signal] = self._change(effect, time_s, found)
        return found

    def _change(self, effect: Effect, time_s: float, others: dict[str, Changed]) -> Changed:
        active_s = min(max(0.0, time_s - self.began_s), self.lasts_s)
        size = 0.0 if effect.size is None else effect.size.at(self.strength)
        remains = math.exp(-max(0.0, time_s - self.ends_s) / self.recovery_s)
        most = math.inf if effect.most is None else effect.most
        match effect.change:
            case Change.PER_MINUTE:
                return Changed(min(most, size * active_s / 60) * remains)
            case Change.DOUBLES_EVERY:
                return Changed(min(most, 2 ** min(MOST_DOUBLINGS, active_s / size) - 1) * remains)
            case Change.OF:
                return Changed(effect.factor * others[effect.other].added)
        if time_s < self.began_s:
            return Changed()
        match effect.change:
            case Change.ADD:
                return Changed(size * remains)
            case Change.TIMES:
                return Changed(factor=1 + (size - 1) * remains)
        if not self.is_active(time_s):
            return Changed()
        return Changed(replacement=effect.values[int(self.strength * len(effect.values))])


def draw_fault(chance: Random, faults: Faults, began_s: float) -> Fault:
    kind = chance.choice([kind for kind in faults.kinds for _ in range(kind.weight)])
    return Fault(kind, began_s, kind.lasts.at(chance.random()), chance.random(), faults.recovery_s)
