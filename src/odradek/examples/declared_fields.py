"""Typed access to numbers, ranges and lengths of time in the files of an example."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from odradek.conventions.dataclass import dataclass
from odradek.pipelines.definition.fields import Fields, text_of
from odradek.pipelines.definition.nodes import ListNode, MappingNode, Node, Scalar, describe
from odradek.pipelines.definition.vocabulary import parse_duration

if TYPE_CHECKING:
    from collections.abc import Sequence

DURATION_HINT = "write a number and a unit: 30 s, 5 minutes, 1 hour"


@dataclass(frozen=True, slots=True)
class Span:
    """A range of numbers; a single number is a range of its own."""

    low: float
    high: float

    def at(self, share: float) -> float:
        return self.low + (self.high - self.low) * share

    @property
    def middle(self) -> float:
        return (self.low + self.high) / 2


class DeclaredFields(Fields):
    """A mapping with a fixed set of keys, whose values may be numbers, ranges and lengths of time."""

    def number(self, key: str, default: float, *, least: float = -math.inf, most: float = math.inf) -> float:
        node = self.node(key)
        if node is None:
            return default
        found = number_of(node)
        if found is None or not least <= found <= most:
            limits = f" from {least:g} to {most:g}" if most < math.inf else f" of at least {least:g}"
            self.wrong(key, f"a number{limits if least > -math.inf else ''}")
            return default
        return found

    def share(self, key: str, default: float = 0.0) -> float:
        return self.number(key, default, least=0, most=1)

    def whole(self, key: str, default: int, *, least: int = 0) -> int:
        node = self.node(key)
        if node is None:
            return default
        if isinstance(node, Scalar) and type(node.value) is int and node.value >= least:
            return node.value
        self.wrong(key, f"a whole number of at least {least}")
        return default

    def span(self, key: str, *, required: str = "", least: float = -math.inf) -> Span | None:
        """A number, or two numbers of which the first is not the greater."""
        node = self._present(key, required)
        if node is None:
            return None
        items = node.items if isinstance(node, ListNode) else (node, node)
        numbers = [number for item in items if (number := number_of(item)) is not None]
        if len(items) != 2 or len(numbers) != 2 or numbers[0] > numbers[1] or numbers[0] < least:
            self.wrong(key, "a number or [least, most]", f"numbers of at least {least:g}" if least > -math.inf else "")
            return None
        return Span(*numbers)

    def seconds(self, key: str, default: float) -> float:
        """A length of time, in seconds."""
        length = self.duration(key)
        return default if length is None else length.milliseconds / 1000

    def seconds_span(self, key: str, *, required: str = "") -> Span | None:
        """A length of time, or two of which the first is not the greater; in seconds."""
        node = self._present(key, required)
        if node is None:
            return None
        items = node.items if isinstance(node, ListNode) else (node, node)
        found = [length for item in items if (length := parse_duration(text_of(item, loose=True) or "")) is not None]
        if len(items) != 2 or len(found) != 2 or found[0].milliseconds > found[1].milliseconds:
            self.wrong(key, "a length of time or [shortest, longest]", DURATION_HINT)
            return None
        return Span(found[0].milliseconds / 1000, found[1].milliseconds / 1000)

    def entries(self, key: str, what: str) -> Sequence[tuple[Scalar, Node]]:
        """The entries of a mapping with names of the user's choice."""
        node = self.node(key)
        if node is None:
            return ()
        if isinstance(node, MappingNode):
            return node.entries
        self.wrong(key, f"a mapping of {what}")
        return ()

    def weights(self, key: str) -> tuple[tuple[str, float], ...]:
        """Names with their weights."""
        found = []
        for name, value in self.entries(key, "names to weights"):
            weight = number_of(value)
            if weight is None or weight <= 0:
                self.problems.error(
                    value.place, f"the weight of '{name.text}' must be a number above 0, not {describe(value)}"
                )
            else:
                found.append((name.text, weight))
        return tuple(found)

    def _present(self, key: str, required: str) -> Node | None:
        node = self.node(key)
        if node is None and required:
            self.missing(key, required)
        return node


def number_of(node: Node) -> float | None:
    """The number of a scalar; integers stay integers."""
    if isinstance(node, Scalar) and isinstance(node.value, int | float) and not isinstance(node.value, bool):
        return node.value
    return None
