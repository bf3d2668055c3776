"""Layered layout of a graph for a drawing: layers from left to right, few crossings, neighbours at similar heights."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from odradek.conventions.dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

ROUNDS = 12
TIP = 6  # length of an arrow's tip beyond the end of its line


@dataclass(frozen=True, slots=True)
class Layout:
    """The ids of each layer from top to bottom, the vertical centre of each id, and the ids along each edge.

    An edge that skips layers gets a virtual node in each skipped layer, which is laid out like any other node.
    """

    layers: tuple[tuple[str, ...], ...]
    heights: Mapping[str, float]
    routes: Mapping[tuple[str, str], tuple[str, ...]]


def lay_out(inputs: Mapping[str, Sequence[str]], size: Mapping[str, float], gap: float) -> Layout:
    """Lays out the graph. `inputs` has every node, in topological order; `size` is the height of each node."""
    depth: dict[str, int] = {}
    for node, before in inputs.items():
        depth[node] = max((depth[each] + 1 for each in before), default=0)
    layers: list[list[str]] = [[] for _ in range(max(depth.values(), default=-1) + 1)]
    for node, level in depth.items():
        layers[level].append(node)
    left: dict[str, list[str]] = {node: [] for node in inputs}
    routes: dict[tuple[str, str], tuple[str, ...]] = {}
    for node, before in inputs.items():
        for each in before:
            route = [each]
            for level in range(depth[each] + 1, depth[node]):
                point = f"\0{each}\0{node}\0{level}"
                layers[level].append(point)
                left[point] = [route[-1]]
                route.append(point)
            left[node].append(route[-1])
            routes[each, node] = (*route, node)
    right: dict[str, list[str]] = {node: [] for node in left}
    for node, before in left.items():
        for each in before:
            right[each].append(node)
    sort_layers(layers, left, right)
    return Layout(tuple(map(tuple, layers)), place_heights(layers, left, right, size, gap), routes)


class Columns(NamedTuple):
    """The left edge and the width of each layer, and the layer of each id."""

    lefts: list[float]
    widths: list[float]
    level_of: dict[str, int]

    @property
    def right(self) -> float:
        return self.lefts[-1] + self.widths[-1] if self.lefts else 0.0

    def edge(self, route: Sequence[str], heights: Mapping[str, float]) -> tuple[str, str]:
        """SVG paths of an edge's line and of its tip: a curve from the right of one node to the left of another,
        horizontal where it crosses a layer."""
        level = self.level_of[route[0]]
        x, y = self.lefts[level] + self.widths[level], heights[route[0]]
        line = [f"M {x:.1f} {y:.1f}"]
        for each in route[1:]:
            level = self.level_of[each]
            is_last = each == route[-1]
            end, height = self.lefts[level] - (TIP if is_last else 0), heights[each]
            bend = (end - x) / 2
            line.append(f"C {x + bend:.1f} {y:.1f} {end - bend:.1f} {height:.1f} {end:.1f} {height:.1f}")
            x, y = end, height
            if not is_last:
                x += self.widths[level]
                line.append(f"L {x:.1f} {y:.1f}")
        return " ".join(line), f"M {x + TIP:.1f} {y:.1f} l -8 -4.5 v 9 z"


def place_columns(layout: Layout, widths: Mapping[str, float], margin: float, gap: float) -> Columns:
    """Each layer is as wide as its widest node; virtual nodes have no width."""
    widest = [max((widths[each] for each in layer if each in widths), default=0.0) for layer in layout.layers]
    lefts = [margin + sum(widest[:level]) + level * gap for level in range(len(widest))]
    return Columns(lefts, widest, {each: level for level, layer in enumerate(layout.layers) for each in layer})


def shortened(text: str, room: float, character: float) -> str:
    """The text, cut to the width of a node; `character` is the average width of one."""
    most = max(int(room / character), 3)
    return text if len(text) <= most else text[: most - 1] + "…"


def sort_layers(layers: list[list[str]], left: Mapping[str, list[str]], right: Mapping[str, list[str]]) -> None:
    """Sorts each layer by the mean rank of its neighbours, in alternating left and right sweeps."""
    for turn in range(ROUNDS):
        sides = left if turn % 2 == 0 else right
        for layer in layers if turn % 2 == 0 else reversed(layers):
            rank = {node: number for each in layers for number, node in enumerate(each)}
            middle = {
                node: sum(rank[each] for each in sides[node]) / len(sides[node]) if sides[node] else rank[node]
                for node in layer
            }
            layer.sort(key=lambda node: middle[node])


def place_heights(
    layers: list[list[str]],
    left: Mapping[str, list[str]],
    right: Mapping[str, list[str]],
    size: Mapping[str, float],
    gap: float,
) -> dict[str, float]:
    """The vertical centre of each node: as near to the mean of its neighbours as the other nodes of its layer allow."""
    heights: dict[str, float] = {}
    for layer in layers:
        below = 0.0
        for node in layer:
            height = size.get(node, 0.0)
            heights[node] = below + height / 2
            below += height + gap
    for turn in range(ROUNDS):
        sides = left if turn % 2 == 0 else right
        for layer in layers if turn % 2 == 0 else reversed(layers):
            wanted = [
                sum(heights[each] for each in sides[node]) / len(sides[node]) if sides[node] else heights[node]
                for node in layer
            ]
            heights.update(zip(layer, spread(layer, wanted, size, gap), strict=True))
    top = min((heights[node] - size.get(node, 0.0) / 2 for node in heights), default=0.0)
    return {node: height - top for node, height in heights.items()}


def spread(layer: list[str], wanted: list[float], size: Mapping[str, float], gap: float) -> list[float]:
    """Moves nodes apart that would overlap: the mean of resolving overlaps downwards and upwards."""

    def distance(one: int, other: int) -> float:
        return (size.get(layer[one], 0.0) + size.get(layer[other], 0.0)) / 2 + gap

    down, up = list(wanted), list(wanted)
    for i in range(1, len(layer)):
        down[i] = max(down[i], down[i - 1] + distance(i - 1, i))
    for i in range(len(layer) - 2, -1, -1):
        up[i] = min(up[i], up[i + 1] - distance(i, i + 1))
    return [(one + other) / 2 for one, other in zip(down, up, strict=True)]
