"""Draws the lineage as text: a tree from each source to its sinks, in 80 columns, or a diagram of Mermaid."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.pipelines.definition.lineage import Kind, LineageNode, facts_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from odradek.pipelines.definition.model import Pipeline

MARKS = {Kind.SOURCE: "●", Kind.STEP: "○", Kind.VIEW: "▦", Kind.SINK: "▶"}
SHAPES = {Kind.SOURCE: ("[(", ")]"), Kind.STEP: ("(", ")"), Kind.VIEW: ("[[", "]]"), Kind.SINK: (">", "]")}
WIDTH = 80


def draw_mermaid(nodes: Sequence[LineageNode]) -> str:
    """A flowchart, as Markdown shows it in a block of `mermaid`."""
    numbers = {node.id: f"n{number}" for number, node in enumerate(nodes)}
    lines = ["flowchart LR"]
    for node in nodes:
        left, right = SHAPES[node.kind]
        text = "<br/>".join(each.replace("&", "&amp;").replace('"', "&quot;") for each in (node.name, node.detail))
        lines.append(f'  {numbers[node.id]}{left}"{text}"{right}')
        lines += [f"  {numbers[each]} --> {numbers[node.id]}" for each in node.inputs]
    return "\n".join(lines)


def draw_text(pipeline: Pipeline, nodes: Sequence[LineageNode], width: int = WIDTH) -> str:
    """A node with several inputs is drawn below the last of them; the others point to it with `↓`."""
    readers: dict[str, list[LineageNode]] = {node.id: [] for node in nodes}
    for node in nodes:
        for each in node.inputs:
            readers[each].append(node)
    lines = [f"{pipeline.name}  {' · '.join(facts_of(pipeline))}", ""]
    drawn: set[str] = set()

    def draw(node: LineageNode, lead: str, branch: str, parent: str | None) -> None:
        waits = parent is not None and drawn_later(node, parent)
        detail = "↓" if waits else node.detail
        lines.append(cut(f"{lead}{branch}{MARKS[node.kind]} {node.name}", detail, width))
        if waits:
            return
        drawn.add(node.id)
        below = lead + {"": "", "├─ ": "│  ", "└─ ": "   "}[branch]
        for each in readers[node.id]:
            draw(each, below, "└─ " if each is readers[node.id][-1] else "├─ ", node.id)

    def drawn_later(node: LineageNode, parent: str) -> bool:
        return any(each != parent and each not in drawn for each in node.inputs)

    roots = [node for node in nodes if not node.inputs]
    # Static tables come first, so that a join is drawn below its stream, with the static table pointing to it.
    streams = {f"source/{each.name}" for each in pipeline.sources if each.is_stream}
    for root in sorted(roots, key=lambda node: node.id in streams):
        draw(root, "", "", None)
    legend = "   ".join(f"{MARKS[kind]} {kind}" for kind in Kind if any(node.kind is kind for node in nodes))
    return "\n".join([*lines, "", legend])


def cut(head: str, detail: str, width: int) -> str:
    room = width - len(head) - 2
    if room < 4:
        return head
    return f"{head}  {detail if len(detail) <= room else detail[: room - 1] + '…'}"
