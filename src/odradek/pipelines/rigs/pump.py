"""One pump: readings that vary around its level, follow the time of day, and occasionally fail.

A state machine without a clock: the caller passes the time. The same seed and times give the same readings.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from random import Random

from odradek.pipelines.rigs.failures import MEAN_DURATION_S, RECOVERED_S, Failure, draw_failure

DAY_S = 86_400.0
HOTTEST_HOUR = 15.0
WANDER_S = 300.0  # time constant of a deviation from the pump's level


@dataclass(frozen=True, slots=True)
class Readings:
    production: int
    pressure: int
    temperature: int
    oil_percentage: int
    injection_vol: int


@dataclass(slots=True)
class MeanRevertingValue:
    """A mean-reverting quantity (an Ornstein-Uhlenbeck process)."""

    level: float
    spread: float
    deviation: float

    def advance(self, elapsed_s: float, chance: Random) -> None:
        kept = math.exp(-elapsed_s / WANDER_S)
        self.deviation = kept * self.deviation + self.spread * math.sqrt(1 - kept * kept) * chance.gauss(0, 1)

    @property
    def value(self) -> float:
        return self.level + self.deviation


class Pump:
    def __init__(self, pump_id: int, seed: int, failures_per_hour: float) -> None:
        self.pump_id = pump_id
        self.failure: Failure | None = None
        # One generator per pump, so that adding a pump does not change the others.
        self._chance = Random(f"{seed}/{pump_id}")
        self._failures_per_s = failures_per_hour / 3600
        self._next_failure_s = math.inf
        self._time_s: float | None = None
        self._day_shift_s = self._chance.uniform(-3600, 3600)
        self._production = self._wander((40, 60), 2.0)
        self._pressure = self._wander((90, 120), 3.0)
        self._temperature = self._wander((25, 40), 1.5)
        self._oil = self._wander((14, 26), 1.0)
        self._injection = self._wander((12_000, 18_000), 250.0)

    def _wander(self, levels: tuple[float, float], spread: float) -> MeanRevertingValue:
        return MeanRevertingValue(self._chance.uniform(*levels), spread, self._chance.gauss(0, spread))

    def advance(self, time_s: float) -> None:
        """Advances the time. On the first call the pump has been running for long, so it may already be failing."""
        if self._time_s is None:
            self._time_s = time_s
            self._begin(time_s)
        elapsed_s = max(0.0, time_s - self._time_s)
        self._time_s = max(time_s, self._time_s)
        for wander in (self._production, self._pressure, self._temperature, self._oil, self._injection):
            wander.advance(elapsed_s, self._chance)
        while self._time_s >= self._next_failure_s:
            self.failure = draw_failure(self._chance, self._next_failure_s)
            self._next_failure_s = self.failure.ends_s + RECOVERED_S + self._calm_s()
        if self.failure is not None and self._time_s > self.failure.ends_s + RECOVERED_S:
            self.failure = None

    def _begin(self, time_s: float) -> None:
        failing_share = self._failures_per_s * MEAN_DURATION_S
        if self._chance.random() < failing_share / (1 + failing_share):
            self._next_failure_s = time_s - self._chance.random() * MEAN_DURATION_S
        else:
            self._next_failure_s = time_s + self._calm_s()

    def _calm_s(self) -> float:
        return self._chance.expovariate(self._failures_per_s) if self._failures_per_s else math.inf

    def is_silent(self, time_s: float) -> bool:
        return self.failure is not None and self.failure.is_silent(time_s)

    def readings(self, time_s: float) -> Readings:
        """The sensor readings at a time, now or some minutes ago."""
        noise = self._chance.gauss
        day = math.cos(2 * math.pi * (time_s + self._day_shift_s - HOTTEST_HOUR * 3600) / DAY_S)
        pressure_added = heat_added = 0.0
        if self.failure is not None:
            pressure_added, heat_added = self.failure.pressure_added(time_s), self.failure.heat_added(time_s)
        loss = 0.15 * pressure_added + 0.3 * heat_added  # a failing pump produces less
        return Readings(
            production=within(0, 100, self._production.value + 2 * day - loss + noise(0, 1)),
            pressure=within(0, 300, self._pressure.value + 2 * day + pressure_added + noise(0, 0.7)),
            temperature=within(-20, 150, self._temperature.value + 4 * day + heat_added + noise(0, 0.4)),
            oil_percentage=within(1, 60, self._oil.value + noise(0, 0.5)),
            injection_vol=within(0, 30_000, self._injection.value + noise(0, 50)),
        )


def within(least: int, most: int, value: float) -> int:
    return min(most, max(least, round(value)))
