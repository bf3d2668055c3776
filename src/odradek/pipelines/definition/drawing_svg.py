"""The lineage as an SVG of its own: no script, no font to load, light or dark as the reader's system is."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from odradek.pipelines.definition.layout import Layout, lay_out
from odradek.pipelines.definition.lineage import Kind, LineageNode, facts_of, lineage_of

if TYPE_CHECKING:
    from odradek.pipelines.definition.model import Pipeline

NODE_HEIGHT = 46.0
NODE_GAP = 18.0
LAYER_GAP = 64.0
MARGIN = 28.0
TITLE_HEIGHT = 62.0
LEGEND_HEIGHT = 40.0
SLANT = 14.0  # how far a sink points, and a source is notched
NARROWEST, WIDEST = 96.0, 250.0
NAME_WIDTH, DETAIL_WIDTH = 7.9, 6.3  # of a character, at 14 and 11.5 pixels

COLOURS = """
  svg { --paper: #ffffff; --ink: #1c2430; --faint: #5d6b7e; --line: #9aa7b8;
        --source: #dcebfb; --source-line: #3b7dc4; --step: #f1f3f6; --step-line: #7b8797;
        --view: #e4f4e6; --view-line: #3f9150; --sink: #fdeedb; --sink-line: #c97a1c; }
  @media (prefers-color-scheme: dark) {
    svg { --paper: #14181f; --ink: #e8edf4; --faint: #9aa7b8; --line: #5f6c7e;
          --source: #17304b; --source-line: #5b9be0; --step: #222934; --step-line: #78869a;
          --view: #18361f; --view-line: #5bb46d; --sink: #41290d; --sink-line: #e09a45; } }
  text { font-family: system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; fill: var(--ink); }
  .title { font-size: 20px; font-weight: 600; }
  .fact, .legend { font-size: 12px; fill: var(--faint); }
  .name { font-size: 14px; font-weight: 600; }
  .detail { font-size: 11.5px; fill: var(--faint); }
  .edge { fill: none; stroke: var(--line); stroke-width: 1.5; }
  .tip { fill: var(--line); }
  .shape { stroke-width: 1.5; }
"""


def draw_svg(pipeline: Pipeline) -> str:
    nodes = {node.id: node for node in lineage_of(pipeline)}
    layout = lay_out({node.id: node.inputs for node in nodes.values()}, dict.fromkeys(nodes, NODE_HEIGHT), NODE_GAP)
    widths = [max((node_width(nodes[each]) for each in layer if each in nodes), default=0) for layer in layout.layers]
    lefts = [MARGIN + sum(widths[:level]) + level * LAYER_GAP for level in range(len(widths))]
    level_of = {each: level for level, layer in enumerate(layout.layers) for each in layer}
    tallest = max((height + NODE_HEIGHT / 2 for each, height in layout.heights.items() if each in nodes), default=0.0)
    least = 360.0
    width = max(MARGIN + sum(widths) + LAYER_GAP * max(len(widths) - 1, 0), least) + MARGIN
    height = TITLE_HEIGHT + MARGIN + max(tallest, *layout.heights.values(), 0.0) + LEGEND_HEIGHT + MARGIN

    def middle(each: str) -> float:
        return TITLE_HEIGHT + MARGIN + layout.heights[each]

    edges = [edge(route, nodes, level_of, lefts, widths, middle) for route in layout.routes.values()]
    shapes = [
        shape(nodes[each], lefts[level_of[each]], middle(each), widths[level_of[each]]) for each in drawn(layout, nodes)
    ]
    title = escape(pipeline.name)
    facts = escape(" · ".join(facts_of(pipeline)))
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" '
            f'width="{width:.0f}" height="{height:.0f}" role="img" aria-label="Lineage of {title}">',
            f"<title>Lineage of {title}</title>",
            f"<style>{COLOURS}</style>",
            f'<rect width="{width:.0f}" height="{height:.0f}" fill="var(--paper)"/>',
            f'<text class="title" x="{MARGIN}" y="{MARGIN + 16}">{title}</text>',
            f'<text class="fact" x="{MARGIN}" y="{MARGIN + 38}">{facts}</text>',
            *edges,
            *shapes,
            *legend(nodes, height - MARGIN),
            "</svg>",
            "",
        ]
    )


def drawn(layout: Layout, nodes: dict[str, LineageNode]) -> list[str]:
    return [each for layer in layout.layers for each in layer if each in nodes]


def node_width(node: LineageNode) -> float:
    wanted = max(len(node.name) * NAME_WIDTH, len(node.detail) * DETAIL_WIDTH) + 28 + SLANT
    return min(max(wanted, NARROWEST), WIDEST)


def edge(route, nodes, level_of, lefts, widths, middle) -> str:  # type: ignore[no-untyped-def]
    """A curve from the right of one node to the left of another, level where it passes a layer."""
    first, last = route[0], route[-1]
    x, y = lefts[level_of[first]] + widths[level_of[first]], middle(first)
    path = [f"M {x:.1f} {y:.1f}"]
    for each in route[1:]:
        level = level_of[each]
        end = lefts[level] - (5 if each == last else 0)
        bend = (end - x) / 2
        path.append(f"C {x + bend:.1f} {y:.1f} {end - bend:.1f} {middle(each):.1f} {end:.1f} {middle(each):.1f}")
        x, y = end, middle(each)
        if each not in nodes:
            x += widths[level]
            path.append(f"L {x:.1f} {y:.1f}")
    tip = lefts[level_of[last]]
    if nodes[last].kind is Kind.SINK:
        tip += 0
    return (
        f'<path class="edge" d="{" ".join(path)}"/>'
        f'<path class="tip" d="M {tip:.1f} {y:.1f} l -8 -4.5 v 9 z"/>'
    )  # fmt: skip


def shape(node: LineageNode, x: float, middle: float, width: float) -> str:
    top = middle - NODE_HEIGHT / 2
    style = f'class="shape" fill="var(--{node.kind})" stroke="var(--{node.kind}-line)"'
    text_x = x + 14 + (4 if node.kind is Kind.SOURCE else 0)
    room = width - 28 - (SLANT if node.kind in {Kind.SOURCE, Kind.SINK} else 0)
    return "\n".join(
        [
            f"<g><title>{escape(f'{node.kind} {node.name}: {node.detail}')}</title>",
            outline(node.kind, x, top, width, style),
            f'<text class="name" x="{text_x:.1f}" y="{middle - 3:.1f}">{fitted(node.name, room, NAME_WIDTH)}</text>',
            f'<text class="detail" x="{text_x:.1f}" y="{middle + 14:.1f}">{fitted(node.detail, room, DETAIL_WIDTH)}</text>',
            "</g>",
        ]
    )


def outline(kind: Kind, x: float, y: float, width: float, style: str, height: float = NODE_HEIGHT) -> str:
    """One shape a kind: a cylinder on its side, a rounded box, a table, an arrow."""
    slant = SLANT * height / NODE_HEIGHT
    if kind is Kind.SOURCE:
        bow = slant / 2
        right = x + width - bow
        return (
            f'<path {style} d="M {x + bow:.1f} {y:.1f} H {right:.1f} a {bow:.1f} {height / 2:.1f} 0 0 1 0 {height:.1f} '
            f'H {x + bow:.1f} a {bow:.1f} {height / 2:.1f} 0 0 1 0 {-height:.1f} z"/>'
            f'<path {style} style="fill: none" d="M {x + bow:.1f} {y:.1f} a {bow:.1f} {height / 2:.1f} 0 0 1 0 {height:.1f}"/>'
        )
    if kind is Kind.SINK:
        return (
            f'<path {style} stroke-linejoin="round" d="M {x:.1f} {y:.1f} H {x + width - slant:.1f} '
            f'l {slant:.1f} {height / 2:.1f} l {-slant:.1f} {height / 2:.1f} H {x:.1f} z"/>'
        )
    if kind is Kind.VIEW:
        rule = y + height * 0.14
        return (
            f'<rect {style} x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}"/>'
            f'<path {style} d="M {x:.1f} {rule:.1f} h {width:.1f}"/>'
        )
    return f'<rect {style} x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" rx="{height / 5:.1f}"/>'


def fitted(text: str, room: float, character: float) -> str:
    most = max(int(room / character), 3)
    return escape(text if len(text) <= most else text[: most - 1] + "…")


def legend(nodes: dict[str, LineageNode], bottom: float) -> list[str]:
    parts = []
    x = MARGIN
    for kind in Kind:
        if any(node.kind is kind for node in nodes.values()):
            style = f'class="shape" fill="var(--{kind})" stroke="var(--{kind}-line)"'
            parts.append(outline(kind, x, bottom - 14, 26, style, height=16))
            parts.append(f'<text class="legend" x="{x + 34:.1f}" y="{bottom - 2:.1f}">{kind}</text>')
            x += 34 + len(kind) * 7 + 22
    return parts
