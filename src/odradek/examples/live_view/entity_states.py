"""States of entities: each has the state of its last records in one topic, as long as they are recent."""

from __future__ import annotations

from collections import Counter
from dataclasses import field
from typing import TYPE_CHECKING

from odradek.conventions.dataclass import dataclass
from odradek.examples.live_view.records import text_of

if TYPE_CHECKING:
    from odradek.examples.live_view.definition import States
    from odradek.examples.live_view.records import SeenRecord

MOST_ENTITIES = 10_000


@dataclass(slots=True)
class Activity:
    """When an entity was last seen, and when it last got each state."""

    last_s: float
    set_s: dict[str, float] = field(default_factory=dict)


class StateMeter:
    def __init__(self, declared: States) -> None:
        self.declared = declared
        self.topics = (declared.seen_in, declared.topic)
        self._entities: dict[str, Activity] = {}

    def take(self, now_s: float, record: SeenRecord) -> None:
        if record.topic == self.declared.topic:
            value = self.declared.value_of(record.text(self.declared.column))
            entity = text_of(record.columns.get(self.declared.key, record.key))
            activity = self._entities.get(entity)
            if activity is not None and value is not None:
                activity.set_s[value.name] = now_s
        if record.topic == self.declared.seen_in:
            self._see(now_s, text_of(record.key))

    def _see(self, now_s: float, entity: str) -> None:
        activity = self._entities.get(entity)
        if activity is not None:
            activity.last_s = now_s
        elif len(self._entities) < MOST_ENTITIES:
            self._entities[entity] = Activity(now_s)

    def _state(self, activity: Activity, now_s: float) -> str:
        for value in self.declared.values:
            set_s = activity.set_s.get(value.name)
            if set_s is None:
                continue
            if set_s > activity.last_s if value.lasts_until_seen else now_s - set_s <= self.declared.lasts_s:
                return value.name
        return self.declared.otherwise

    def counts(self, now_s: float) -> dict[str, int]:
        """The number of entities in each state, the usual state first."""
        found = Counter(self._state(activity, now_s) for activity in self._entities.values())
        names = [self.declared.otherwise, *(value.name for value in reversed(self.declared.values))]
        return {name: found[name] for name in names}

    def states(self, now_s: float) -> dict[str, str]:
        """The state of each entity."""
        return {name: self._state(activity, now_s) for name, activity in self._entities.items()}

    def color(self, state: str) -> str:
        return next((value.color for value in self.declared.values if value.name == state), "green")
