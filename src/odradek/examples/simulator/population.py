"""A population of entities and its records: most are valid and current, some are late, sent twice or malformed.

Pure: the caller passes the time and gets the record that is sent at that time. The same declaration, seed and times
give the same records.
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

from odradek.conventions.dataclass import dataclass
from odradek.examples.simulator.entity import Entity
from odradek.examples.simulator.flaws import draw_flaw, spoil

if TYPE_CHECKING:
    from odradek.examples.simulator.model import Simulation


@dataclass(frozen=True, slots=True)
class SimulatedRecord:
    """A record for the topic, and the simulator's facts about it. `event_time_s` is since the epoch."""

    key: bytes
    value: bytes | None
    entity_id: int
    number: int
    event_time_s: float
    is_late: bool = False
    flaw: str | None = None
    is_duplicate: bool = False


class Population:
    def __init__(self, simulation: Simulation) -> None:
        self.simulation = simulation
        ids = range(simulation.first_id, simulation.first_id + simulation.count)
        self.entities = [Entity(entity_id, simulation.seed, simulation) for entity_id in ids]
        self._chance = Random(f"{simulation.seed}/fleet")
        self._round: list[Entity] = []  # entities that have not reported in this round, in a random order
        self._turn: tuple[Entity, int] | None = None  # an entity that sends several records at its turn, and how many
        self._repeated: SimulatedRecord | None = None  # is sent again
        self._number = 0
        self._key = simulation.key.renderer()
        self._value = simulation.value.renderer()

    def next_record(self, time_s: float) -> SimulatedRecord | None:
        """The record that is sent at this time; None if every entity is silent."""
        if self._repeated is not None:
            repeated, self._repeated = self._repeated, None
            return repeated
        entity = self._next_entity(time_s)
        if entity is None:
            return None
        self._number += 1
        flaws, dice = self.simulation.flaws, self._chance.random()
        is_late = dice < flaws.late_share
        event_time_s = time_s
        if flaws.late_by is not None:
            event_time_s -= is_late * flaws.late_by.at(self._chance.random())
        values = entity.readings(event_time_s)
        values["number"] = self._number
        key, value = self._key(values, event_time_s).encode(), self._value(values, event_time_s).encode()
        made = SimulatedRecord(key, value, entity.entity_id, self._number, event_time_s, is_late)
        return made if dice < flaws.late_share else self._with_flaw(made, dice - flaws.late_share)

    def _with_flaw(self, made: SimulatedRecord, dice: float) -> SimulatedRecord:
        flaws = self.simulation.flaws
        if dice < flaws.malformed_share:
            flaw = draw_flaw(self._chance, flaws.kinds)
            spoiled = spoil(made.value or b"", flaw, self._chance)
            return SimulatedRecord(
                made.key, spoiled, made.entity_id, made.number, made.event_time_s, flaw=flaw.name
            )  # fmt: skip
        if dice < flaws.malformed_share + flaws.duplicate_share:
            self._repeated = SimulatedRecord(
                made.key, made.value, made.entity_id, made.number, made.event_time_s, is_duplicate=True
            )
        return made

    def _next_entity(self, time_s: float) -> Entity | None:
        """The next entity to report: each has one turn per round, silent ones are skipped."""
        if self._turn is not None:
            entity, left = self._turn
            self._turn = (entity, left - 1) if left > 1 else None
            entity.advance(time_s)
            return entity
        for _ in range(2 * len(self.entities)):
            if not self._round:
                self._round = self._chance.sample(self.entities, len(self.entities))
            entity = self._round.pop()
            entity.advance(time_s)
            records = entity.records(time_s)
            if records > 1:
                self._turn = (entity, records - 1)
            if records:
                return entity
        return None
