"""Gradual failures of a pump: rising pressure, overheating, or no records at all.

A failure is a function of time: its effect on the readings can be computed for any time, including the past.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from random import Random

MOST_PRESSURE_ADDED = 110.0
MOST_HEAT_ADDED = 80.0
RECOVERY_S = 20.0  # after the repair, the deviation falls by two thirds in this time
RECOVERED_S = 6 * RECOVERY_S


class FailureKind(StrEnum):
    PRESSURE_CREEP = "pressure creep"
    OVERHEATING = "overheating"
    SILENCE = "silence"


@dataclass(frozen=True, slots=True)
class Failure:
    """A failure. `strength` is the rise per minute of a creep, or the doubling time of an overheating in seconds."""

    kind: FailureKind
    began_s: float
    lasts_s: float
    strength: float

    @property
    def ends_s(self) -> float:
        return self.began_s + self.lasts_s

    def is_silent(self, time_s: float) -> bool:
        return self.kind is FailureKind.SILENCE and self.began_s <= time_s < self.ends_s

    def pressure_added(self, time_s: float) -> float:
        if self.kind is not FailureKind.PRESSURE_CREEP:
            return 0.0
        return min(MOST_PRESSURE_ADDED, self.strength * self._active_s(time_s) / 60) * self._remains(time_s)

    def heat_added(self, time_s: float) -> float:
        if self.kind is not FailureKind.OVERHEATING:
            return 0.0
        doublings = min(8.0, self._active_s(time_s) / self.strength)
        return min(MOST_HEAT_ADDED, 2**doublings - 1) * self._remains(time_s)

    def _active_s(self, time_s: float) -> float:
        return min(max(0.0, time_s - self.began_s), self.lasts_s)

    def _remains(self, time_s: float) -> float:
        return math.exp(-max(0.0, time_s - self.ends_s) / RECOVERY_S)


# ranges of duration and strength by kind, both drawn uniformly
COURSES = {
    FailureKind.PRESSURE_CREEP: ((240.0, 480.0), (12.0, 25.0)),
    FailureKind.OVERHEATING: ((240.0, 420.0), (25.0, 40.0)),
    FailureKind.SILENCE: ((45.0, 180.0), (1.0, 1.0)),
}
MEAN_DURATION_S = sum(sum(lasts) / 2 for lasts, _strength in COURSES.values()) / len(COURSES)


def draw_failure(chance: Random, began_s: float) -> Failure:
    kind = chance.choice(list(COURSES))
    lasts, strength = COURSES[kind]
    return Failure(kind, began_s, chance.uniform(*lasts), chance.uniform(*strength))
