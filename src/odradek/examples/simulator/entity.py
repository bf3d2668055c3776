"""One entity: its signals, its state and its faults.

A state machine without a clock: the caller passes the time. The same seed and times give the same readings.
"""

from __future__ import annotations

import math
from random import Random
from typing import TYPE_CHECKING, Any

from odradek.examples.simulator.faults import RECOVERIES, Fault, draw_fault
from odradek.examples.simulator.model import Walk
from odradek.examples.simulator.signals import WalkSignal, live

if TYPE_CHECKING:
    from odradek.examples.simulator.model import EntityState, Simulation

DAY_S = 86_400.0


class Entity:
    def __init__(self, entity_id: int, seed: int, simulation: Simulation) -> None:
        self.entity_id = entity_id
        self.fault: Fault | None = None
        self.state = ""
        # One generator per entity, so that adding an entity does not change the others.
        self._chance = chance = Random(f"{seed}/{entity_id}")
        self._simulation = simulation
        self._faults = simulation.faults
        self._states = {state.name: state for state in simulation.states}
        self._next_fault_s = self._next_state_s = math.inf
        self._time_s: float | None = None
        self._day_offset_s = 0.0
        if simulation.day is not None:
            self._day_offset_s = chance.uniform(-simulation.day.shift_s, simulation.day.shift_s)
        self._signals = [live(signal, chance) for signal in simulation.signals]
        self._walks: list[tuple[float, list[WalkSignal]]] = self._walks_by_time()

    def _walks_by_time(self) -> list[tuple[float, list[WalkSignal]]]:
        """The walks that follow each other and settle in the same time, so that they share a computation."""
        found: list[tuple[float, list[WalkSignal]]] = []
        for declared, signal in zip(self._simulation.signals, self._signals, strict=True):
            if isinstance(declared.source, Walk) and isinstance(signal, WalkSignal):
                if not found or found[-1][0] != declared.source.settles_s:
                    found.append((declared.source.settles_s, []))
                found[-1][1].append(signal)
        return found

    def advance(self, time_s: float) -> None:
        """Advances the time. On the first call the entity has existed for long, so it may already have a fault."""
        if self._time_s is None:
            self._time_s = time_s
            self._begin(time_s)
        elapsed_s = max(0.0, time_s - self._time_s)
        self._time_s = now_s = max(time_s, self._time_s)
        for settles_s, walks in self._walks:
            kept = math.exp(-elapsed_s / settles_s)
            moved = math.sqrt(1 - kept * kept)
            for walk in walks:
                walk.advance(kept, moved)
        if now_s >= self._next_state_s:
            self._change_state(now_s)
        if self._faults is not None:
            self._advance_faults(now_s)

    def _begin(self, time_s: float) -> None:
        if self._faults is not None:
            failing_share = self._faults.mean_duration_s / self._faults.every_s
            if self._chance.random() < failing_share / (1 + failing_share):
                self._next_fault_s = time_s - self._chance.random() * self._faults.mean_duration_s
            else:
                self._next_fault_s = time_s + self._calm_s()
        if self._states:
            self._enter(self._chance.choice(self._simulation.states), time_s)

    def _advance_faults(self, now_s: float) -> None:
        assert self._faults is not None
        recovered_s = RECOVERIES * self._faults.recovery_s
        while now_s >= self._next_fault_s:
            self.fault = draw_fault(self._chance, self._faults, self._next_fault_s)
            self._next_fault_s = self.fault.ends_s + recovered_s + self._calm_s()
        if self.fault is not None and now_s > self.fault.ends_s + recovered_s:
            self.fault = None

    def _calm_s(self) -> float:
        assert self._faults is not None
        return self._chance.expovariate(1 / self._faults.every_s)

    def _change_state(self, now_s: float) -> None:
        """Goes through the states that have passed; after a long pause only from now on."""
        following = self._states[self.state].following
        names = [name for name, _weight in following]
        chosen = self._chance.choices(names, [weight for _name, weight in following])[0]
        self._enter(self._states[chosen], now_s)

    def _enter(self, state: EntityState, time_s: float) -> None:
        self.state = state.name
        self._next_state_s = time_s + state.lasts.at(self._chance.random()) if state.following else math.inf

    def records(self, time_s: float) -> int:
        """How many records the entity sends at its turn: 0 while it is silent."""
        return 1 if self.fault is None else self.fault.records(time_s)

    def readings(self, time_s: float) -> dict[str, Any]:
        """The values of a record at a time, now or some minutes ago."""
        day = 0.0
        if self._simulation.day is not None:
            shifted_s = time_s + self._day_offset_s - self._simulation.day.peak_s
            day = math.cos(2 * math.pi * shifted_s / DAY_S)
        fault, state = self.fault, self.state
        values: dict[str, Any] = {"id": self.entity_id, "state": state, "fault": "", "time_ms": int(time_s * 1000)}
        if fault is None:
            for signal in self._signals:
                values[signal.name] = signal.read(day, state, None, values)
            return values
        changes = fault.changes(time_s)
        if fault.is_active(time_s):
            values["fault"] = fault.kind.name
        for signal in self._signals:
            values[signal.name] = signal.read(day, state, changes.get(signal.name), values)
        return values
