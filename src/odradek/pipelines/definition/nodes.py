"""A tree of values with their places: the common form of YAML and Python definitions before parsing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from odradek.conventions.dataclass import dataclass

if TYPE_CHECKING:
    from odradek.pipelines.definition.places import Place

ScalarValue = str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class Scalar:
    """Text, a number, a boolean or null; `text` is its spelling in the source.

    A plain scalar is YAML without quotes, whose value is resolved again after variables are replaced."""

    value: ScalarValue
    text: str
    place: Place
    is_plain: bool = False


@dataclass(frozen=True, slots=True)
class ListNode:
    items: tuple[Node, ...]
    place: Place


@dataclass(frozen=True, slots=True)
class MappingNode:
    entries: tuple[tuple[Scalar, Node], ...]
    place: Place

    def get(self, key: str) -> Node | None:
        return next((value for name, value in self.entries if name.text == key), None)


Node = Scalar | ListNode | MappingNode

LARGEST_PLAIN_TREE = 100_000
DEEPEST_PATH = 3


class TreeTooLarge(Exception):
    """The expanded tree is too large; nested YAML aliases can expand to billions of values."""


def to_plain(node: Node) -> Any:
    """The tree as plain Python values without places, as `json.loads` returns them."""
    budget = LARGEST_PLAIN_TREE

    def plain(each: Node) -> Any:
        nonlocal budget
        budget -= 1
        if budget < 0:
            raise TreeTooLarge
        if isinstance(each, Scalar):
            return each.value
        if isinstance(each, ListNode):
            return [plain(item) for item in each.items]
        return {key.text: plain(value) for key, value in each.entries}

    return plain(node)


def describe(node: Node) -> str:
    """A short description of a value for messages."""
    if isinstance(node, MappingNode):
        return "a mapping"
    if isinstance(node, ListNode):
        return "a list"
    if node.value is None:
        return "empty"
    if isinstance(node.value, bool):
        return f"the boolean {node.text}"
    if isinstance(node.value, int | float):
        return f"the number {node.text}"
    return f"'{shortened(node.text)}'"


def shortened(text: str, length: int = 60) -> str:
    line = " ".join(text.split())
    return line if len(line) <= length else f"{line[: length - 1]}…"


def value_places(node: Node, prefix: str = "") -> dict[str, Place]:
    """The places of all values below a mapping, by path: `window/column`, and `by/hcid` for an item of a list."""
    found: dict[str, Place] = {}
    if isinstance(node, MappingNode) and prefix.count("/") < DEEPEST_PATH:
        for key, value in node.entries:
            found[f"{prefix}{key.text}"] = value.place
            found.update(value_places(value, f"{prefix}{key.text}/"))
    elif isinstance(node, ListNode):
        found.update({f"{prefix}{item.text}": item.place for item in node.items if isinstance(item, Scalar)})
    return found
