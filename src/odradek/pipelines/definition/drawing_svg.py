"""Draws the lineage as a self-contained SVG without scripts or external fonts, in the system's light or dark mode."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from odradek.pipelines.definition.layout import lay_out, place_columns, shortened
from odradek.pipelines.definition.lineage import Kind, LineageNode, facts_of, lineage_of

if TYPE_CHECKING:
    from odradek.pipelines.definition.model import Pipeline

NODE_HEIGHT = 46.0
NODE_GAP = 18.0
LAYER_GAP = 64.0
MARGIN = 28.0
TITLE_HEIGHT = 62.0
LEGEND_HEIGHT = 40.0
SLANT = 14.0  # width of a sink's arrow tip and of a source's curved end
NARROWEST, WIDEST = 96.0, 270.0
NARROWEST_DRAWING = 360.0
NAME_WIDTH, DETAIL_WIDTH = 7.9, 6.3  # average width of a character at 14 and at 11.5 pixels

STYLE = """
  text { font-family: system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; }
  .title { font-size: 20px; font-weight: 600; }
  .fact, .legend { font-size: 12px; }
  .name { font-size: 14px; font-weight: 600; }
  .detail { font-size: 11.5px; }
  .edge { fill: none; stroke-width: 1.5; }
  .shape { stroke-width: 1.5; }
  .line { fill: none; stroke-width: 1.5; }
"""
# (background, text, secondary text, lines), and fill and outline of each kind
LIGHT = ("#ffffff", "#1c2430", "#5d6b7e", "#98a5b6"), {
    Kind.SOURCE: ("#dcebfb", "#3b7dc4"), Kind.STEP: ("#f1f3f6", "#7b8797"),
    Kind.VIEW: ("#e4f4e6", "#3f9150"), Kind.SINK: ("#fdeedb", "#c97a1c"),
}  # fmt: skip
DARK = ("#14181f", "#e8edf4", "#9aa7b8", "#5f6c7e"), {
    Kind.SOURCE: ("#17304b", "#5b9be0"), Kind.STEP: ("#222934", "#78869a"),
    Kind.VIEW: ("#18361f", "#5bb46d"), Kind.SINK: ("#41290d", "#e09a45"),
}  # fmt: skip
Palette = tuple[tuple[str, str, str, str], dict[Kind, tuple[str, str]]]


def colours(palette: Palette) -> str:
    """CSS rules without variables, so that viewers with limited CSS support show the light palette."""
    (paper, ink, faint, line), kinds = palette
    rules = [
        f".paper {{ fill: {paper}; }}",
        f".title, .name {{ fill: {ink}; }}",
        f".fact, .legend, .detail {{ fill: {faint}; }}",
        f".edge {{ stroke: {line}; }}",
        f".tip {{ fill: {line}; }}",
    ]
    for kind, (fill, outlined) in kinds.items():
        rules += [f".{kind} {{ fill: {fill}; stroke: {outlined}; }}", f".line.{kind} {{ fill: none; }}"]
    return "\n  ".join(rules)


def draw_svg(pipeline: Pipeline) -> str:
    nodes = {node.id: node for node in lineage_of(pipeline)}
    layout = lay_out({node.id: node.inputs for node in nodes.values()}, dict.fromkeys(nodes, NODE_HEIGHT), NODE_GAP)
    columns = place_columns(layout, {each: node_width(node) for each, node in nodes.items()}, MARGIN, LAYER_GAP)
    heights = {each: TITLE_HEIGHT + MARGIN + height for each, height in layout.heights.items()}
    lowest = max((heights[each] + (NODE_HEIGHT / 2 if each in nodes else 0) for each in heights), default=TITLE_HEIGHT)
    width = max(columns.right, NARROWEST_DRAWING) + MARGIN
    height = lowest + LEGEND_HEIGHT + MARGIN
    edges = [
        f'<path class="edge" d="{line}"/><path class="tip" d="{tip}"/>'
        for line, tip in (columns.edge(route, heights) for route in layout.routes.values())
    ]
    shapes = [
        shape(nodes[each], columns.lefts[level], heights[each], columns.widths[level])
        for each, level in columns.level_of.items()
        if each in nodes
    ]
    title = escape(pipeline.name)
    facts = escape(" · ".join(facts_of(pipeline)))
    return "\n".join(
        [
            opening(width, height, title),
            f"<title>Lineage of {title}</title>",
            f"<style>{STYLE}  {colours(LIGHT)}",
            f"  @media (prefers-color-scheme: dark) {{\n  {colours(DARK)}\n  }}\n</style>",
            f'<rect class="paper" width="{width:.0f}" height="{height:.0f}"/>',
            f'<text class="title" x="{MARGIN}" y="{MARGIN + 16}">{title}</text>',
            f'<text class="fact" x="{MARGIN}" y="{MARGIN + 38}">{facts}</text>',
            *edges,
            *shapes,
            *legend(nodes, height - MARGIN),
            "</svg>",
            "",
        ]
    )


def opening(width: float, height: float, title: str) -> str:
    box = f'viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" height="{height:.0f}"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {box} role="img" aria-label="Lineage of {title}">'


def node_width(node: LineageNode) -> float:
    wanted = max(len(node.name) * NAME_WIDTH, len(node.detail) * DETAIL_WIDTH) + 34 + SLANT
    return min(max(wanted, NARROWEST), WIDEST)


def shape(node: LineageNode, x: float, middle: float, width: float) -> str:
    text_x = x + 14 + (6 if node.kind is Kind.SOURCE else 0)
    room = width - 28 - (SLANT if node.kind in {Kind.SOURCE, Kind.SINK} else 0)
    drop = 2.5 if node.kind is Kind.VIEW else 0.0  # below the header line of the table shape
    name = escape(shortened(node.name, room, NAME_WIDTH))
    detail = escape(shortened(node.detail, room, DETAIL_WIDTH))
    return "\n".join(
        [
            f"<g><title>{escape(f'{node.kind} {node.name}: {node.detail}')}</title>",
            outline(node.kind, x, middle - NODE_HEIGHT / 2, width),
            f'<text class="name" x="{text_x:.1f}" y="{middle - 2 + drop:.1f}">{name}</text>',
            f'<text class="detail" x="{text_x:.1f}" y="{middle + 14 + drop:.1f}">{detail}</text>',
            "</g>",
        ]
    )


def outline(kind: Kind, x: float, y: float, width: float, height: float = NODE_HEIGHT) -> str:
    """The shape of each kind: a lying cylinder, a rounded box, a table, an arrow."""
    style, line = f'class="shape {kind}"', f'class="line {kind}"'
    slant, half = SLANT * height / NODE_HEIGHT, height / 2
    if kind is Kind.SOURCE:
        bow = slant / 2
        end = f"a {bow:.1f} {half:.1f} 0 0 1 0 {height:.1f}"
        back = f"a {bow:.1f} {half:.1f} 0 0 1 0 {-height:.1f}"
        start = f"M {x + bow:.1f} {y:.1f}"
        body = f'<path {style} d="{start} H {x + width - bow:.1f} {end} H {x + bow:.1f} {back} z"/>'
        return f'{body}<path {line} d="{start} {end}"/>'
    if kind is Kind.SINK:
        arrow = f"H {x + width - slant:.1f} l {slant:.1f} {half:.1f} l {-slant:.1f} {half:.1f} H {x:.1f} z"
        return f'<path {style} stroke-linejoin="round" d="M {x:.1f} {y:.1f} {arrow}"/>'
    box = f'x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}"'
    if kind is Kind.VIEW:
        return f'<rect {style} {box}/><path {line} d="M {x:.1f} {y + height * 0.14:.1f} h {width:.1f}"/>'
    return f'<rect {style} {box} rx="{height / 5:.1f}"/>'


def legend(nodes: dict[str, LineageNode], bottom: float) -> list[str]:
    parts = []
    x = MARGIN
    for kind in Kind:
        if any(node.kind is kind for node in nodes.values()):
            parts.append(outline(kind, x, bottom - 14, 26, height=16))
            parts.append(f'<text class="legend" x="{x + 34:.1f}" y="{bottom - 2:.1f}">{kind}</text>')
            x += 34 + len(kind) * 7 + 22
    return parts
