"""The lineage of a pipeline for display: sources, steps, sinks and views, each with a short description.

It is drawn as text, a tree from each source to its sinks in 80 columns, or as a diagram of Mermaid.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from odradek.conventions.dataclass import dataclass
from odradek.pipelines.definition import model, operations
from odradek.pipelines.definition.vocabulary import Unbounded

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class Kind(StrEnum):
    """The kind of a lineage node."""

    SOURCE = "source"
    STEP = "step"
    VIEW = "view"
    SINK = "sink"


@dataclass(frozen=True, slots=True)
class LineageNode:
    """A source, step, view or sink; `inputs` are the ids of the nodes that it reads, all of a lower level."""

    id: str
    kind: Kind
    name: str
    detail: str
    inputs: tuple[str, ...]
    level: int = 0  # the length of the longest path that leads to it


def nodes_of(pipeline: model.Pipeline, read: Mapping[str, tuple[str, ...]]) -> list[LineageNode]:
    """The nodes of a pipeline; `read` has the sources and steps in topological order, with what each reads."""
    sources = {each.name: each for each in pipeline.sources}
    steps = {each.name: each for each in pipeline.steps}
    ids = {name.lower(): f"source/{name}" if name in sources else f"step/{name}" for name in read}
    found: list[tuple[str, Kind, str, str, tuple[str, ...]]] = []
    for name, tables in read.items():
        kind = Kind.SOURCE if name in sources else Kind.STEP
        detail = source_detail(sources[name]) if name in sources else step_detail(steps[name])
        found.append((ids[name.lower()], kind, name, detail, () if name in sources else tables))
    found += [(f"view/{each.name}", Kind.VIEW, each.name, view_detail(each), (each.input,)) for each in pipeline.views]
    found += [(f"sink/{each.name}", Kind.SINK, each.name, sink_detail(each), (each.input,)) for each in pipeline.sinks]
    nodes: dict[str, LineageNode] = {}
    for key, kind, name, detail, tables in found:
        inputs = tuple(ids[each.lower()] for each in tables if each.lower() in ids)
        level = max((nodes[each].level + 1 for each in inputs), default=0)
        nodes[key] = LineageNode(key, kind, name, pipeline.without_secrets(detail), inputs, level)
    return list(nodes.values())


def words(names: tuple[str, ...]) -> str:
    return ", ".join(names)


def source_detail(source: model.Source) -> str:
    origin = source.origin
    if isinstance(origin, model.TopicOrigin):
        if origin.pattern is not None:
            return f"topics matching {origin.pattern}"
        return f"topic{'' if len(origin.topics) == 1 else 's'} {words(origin.topics)}"
    if isinstance(origin, model.FileOrigin):
        return f"{origin.format} {origin.path}"
    return f"jdbc {origin.table}" if origin.table is not None else "jdbc query"


def step_detail(step: model.Step) -> str:
    detail = operation_detail(step)
    if not step.expectations:
        return detail
    names = tuple(each.name for each in step.expectations)
    return f"{detail}, expects {words(names)}" if len(names) == 1 else f"{detail}, {len(names)} expectations"


def operation_detail(step: model.Step) -> str:
    operation = step.operation
    match operation:
        case operations.Aggregation(window=window):
            by = f" by {words(operation.by)}" if operation.by else ""
            return f"aggregate{by}" + ("" if window is None else f", {window_detail(window)}")
        case operations.Deduplication(within=within):
            return f"first of {words(operation.key)}" + ("" if within is None else f" within {within}")
        case operations.Join():
            return f"{operation.how} join {operation.table} on {words(operation.on)}"
        case operations.StreamJoin():
            period = operation.within or Unbounded.FOREVER
            return f"{operation.how} join {operation.stream} on {words(operation.on)} within {period}"
        case operations.KeyedState():
            return f"state of {words(operation.key)}: {operation.processor}"
        case operations.PythonFunction(function=function):
            return f"python {function}"
    return "sql"


def window_detail(window: operations.Window) -> str:
    if window.gap is not None:
        return f"sessions with a gap of {window.gap}"
    return f"windows of {window.size}" + ("" if window.slide is None else f" every {window.slide}")


def view_detail(view: model.View) -> str:
    content = view.content
    if isinstance(content, model.Changes):
        return changes_detail(content)
    if isinstance(content, model.LatestRows):
        return f"latest by {words(content.key)}"
    return words(tuple(each.name for each in content.aggregates)) + (f" by {words(content.by)}" if content.by else "")


def changes_detail(changes: model.Changes) -> str:
    return f"{'history' if changes.keeps_history else 'state'} of {words(changes.key)} by {changes.sequence}"


def sink_detail(sink: model.Sink) -> str:
    match sink.target:
        case model.TopicTarget(topic=topic):
            return f"topic {topic}"
        case model.FilesTarget(format=kind, path=path):
            return f"{kind} {path}"
        case model.TableTarget(table=table, changes=changes):
            return f"table {table}" + ("" if changes is None else f", {changes_detail(changes)}")
        case model.LakehouseTarget(format=kind, name=name):
            return f"{kind} {name}"
        case model.SparkTarget(format=kind):
            return f"spark {kind}"
        case model.PythonTarget(function=function):
            return f"python {function}"
    return "console"


def facts_of(pipeline: model.Pipeline) -> list[str]:
    """Facts about the whole pipeline, for the heading of a drawing."""
    facts = [f"{pipeline.engine} engine", str(pipeline.delivery).replace("_", " ")]
    return facts + ([f"dead letters to {pipeline.dead_letters}"] if pipeline.dead_letters is not None else [])


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


def draw_text(pipeline: model.Pipeline, nodes: Sequence[LineageNode], width: int = WIDTH) -> str:
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
