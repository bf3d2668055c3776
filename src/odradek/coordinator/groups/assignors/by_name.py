"""The assignors that a broker offers (`group.consumer.assignors`), by their names."""

from __future__ import annotations

from odradek.coordinator.groups.assignors.assignment import Assignment, Assignor, MemberSubscription
from odradek.coordinator.groups.assignors.range_assignor import assign_ranges
from odradek.coordinator.groups.assignors.uniform_assignor import assign_uniformly

__all__ = ["ASSIGNORS", "Assignment", "Assignor", "MemberSubscription"]

ASSIGNORS: dict[str, Assignor] = {"uniform": assign_uniformly, "range": assign_ranges}
