"""The graph of a pipeline as shapes of an SVG, with live figures at its nodes. The template draws them. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from odradek.console.views.figures import compact, rate
from odradek.pipelines.definition.layout import lay_out, place_columns, shortened

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from odradek.console.cluster.snapshot import TopicSummary
    from odradek.console.models.pipelines import KnownPipeline
    from odradek.pipelines.operating.status_record import GraphNode

HEIGHT, GAP, LAYER_GAP, MARGIN = 64.0, 16.0, 56.0, 8.0
NARROWEST, WIDEST = 122.0, 216.0
MOST_CROSSED_LAYERS = 3_000
NAME_WIDTH, DETAIL_WIDTH = 7.6, 6.2  # of a character


class Box(NamedTuple):
    x: float
    y: float
    width: float
    kind: str
    name: str
    detail: str
    figure: str
    tone: str
    title: str
    href: str


@dataclass(frozen=True, slots=True)
class Drawing:
    width: float
    height: float
    boxes: tuple[Box, ...]
    edges: tuple[tuple[str, str], ...]  # paths of lines and of their tips


def draw(known: KnownPipeline, topics: Mapping[str, TopicSummary]) -> Drawing | None:
    """None without nodes, and for a graph that is too large to be laid out while a page waits."""
    nodes = {node.id: node for node in known.published.nodes}
    if not nodes or crossed_layers(known.published.nodes) > MOST_CROSSED_LAYERS:
        return None
    figures = {node.id: figure_of(node, known, topics) for node in nodes.values()}
    layout = lay_out({node.id: node.inputs for node in nodes.values()}, dict.fromkeys(nodes, HEIGHT), GAP)
    widths = {each: width_of(node, figures[each][0]) for each, node in nodes.items()}
    columns = place_columns(layout, widths, MARGIN, LAYER_GAP)
    middles = {each: MARGIN + height for each, height in layout.heights.items()}
    boxes = []
    for name, node in nodes.items():
        level = columns.level_of[name]
        width = columns.widths[level]
        figure, tone = figures[name]
        boxes.append(
            Box(
                columns.lefts[level],
                middles[name] - HEIGHT / 2,
                width,
                node.kind,
                shortened(node.name, width - 26, NAME_WIDTH),
                shortened(node.detail, width - 26, DETAIL_WIDTH),
                figure,
                tone,
                f"{node.kind} {node.name}: {node.detail}",
                node.topics[0] if len(node.topics) == 1 and node.topics[0] in topics else "",
            )
        )
    edges = tuple(columns.edge(route, middles) for route in layout.routes.values())
    lowest = max(middles[each] + (HEIGHT / 2 if each in nodes else 0.0) for each in middles)
    return Drawing(columns.right + MARGIN, lowest + MARGIN, tuple(boxes), edges)


def crossed_layers(nodes: Sequence[GraphNode]) -> int:
    """The length of all edges in layers: the number of points that the layout has to arrange."""
    depth: dict[str, int] = {}
    length = 0
    for node in nodes:
        depth[node.id] = max((depth[each] + 1 for each in node.inputs), default=0)
        length += sum(depth[node.id] - depth[each] for each in node.inputs)
    return length


def figure_of(node: GraphNode, known: KnownPipeline, topics: Mapping[str, TopicSummary]) -> tuple[str, str]:
    """The text below the name, and its tone."""
    if node.kind == "source":
        found = [topics[name].records_per_s for name in node.topics if name in topics]
        return (f"{rate(sum(found))} records/s", "") if found else ("", "")
    if node.kind in {"sink", "view"}:
        rates = known.written_per_s
        return (f"{rate(rates[node.name])} rows/s", "") if node.name in rates else ("", "")
    failed = sum(each.rows for each in known.published.status.expectations if each.step == node.name)
    checked = max((each.checked for each in known.published.status.expectations if each.step == node.name), default=0)
    if failed:
        return f"{compact(failed)} of {compact(checked)} failed" if checked else f"{compact(failed)} failed", "warn"
    return (f"{compact(checked)} row{'' if checked == 1 else 's'} passed", "good") if checked else ("", "")


def width_of(node: GraphNode, figure: str) -> float:
    wanted = max(len(node.name) * NAME_WIDTH, len(node.detail) * DETAIL_WIDTH, len(figure) * DETAIL_WIDTH) + 28
    return min(max(wanted, NARROWEST), WIDEST)
