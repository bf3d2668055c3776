"""Metrics for readers who may not see every topic: the series of other topics are added to the shared one. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.metrics.bounded_series import OTHER
from odradek.metrics.samples import Family, Point

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

TOPIC_LABEL = "topic"


def hide_topics(families: Iterable[Family], is_visible: Callable[[str], bool]) -> list[Family]:
    """The same sums with the labels of visible topics only. `is_visible` is asked once for each topic."""
    known = {OTHER: True}

    def label(name: str, value: str) -> tuple[str, str]:
        if name != TOPIC_LABEL:
            return name, value
        if value not in known:
            known[value] = is_visible(value)
        return name, value if known[value] else OTHER

    return [
        Family(family.definition, _add_up(family.points, label)) if TOPIC_LABEL in family.definition.labels else family
        for family in families
    ]


def _add_up(points: Iterable[Point], label: Callable[[str, str], tuple[str, str]]) -> list[Point]:
    sums: dict[tuple[str, tuple[tuple[str, str], ...]], float] = {}
    for suffix, labels, value in points:
        key = suffix, tuple(label(*each) for each in labels)
        sums[key] = sums.get(key, 0) + value
    return [Point(suffix, labels, value) for (suffix, labels), value in sums.items()]
