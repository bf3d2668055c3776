"""The lineage of a plan: its declarations, each with those that it reads. Hidden tables are parts of them.

It is drawn as text, a tree from each source to its sinks in 80 columns.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from odradek.conventions.dataclass import dataclass
from odradek.pipelines.definition import model, operations
from odradek.pipelines.definition.vocabulary import Unbounded

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from odradek.pipelines.planning.plan import Plan


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


def lineage_of(plan: Plan) -> list[LineageNode]:
    """All nodes in topological order: sources and steps, then views, then sinks."""
    declared: dict[str, model.Source | model.Step] = {}
    read: dict[str, list[str]] = {}
    for table in plan.tables.values():
        if not isinstance(table.owner, model.View):
            declared[table.owner.name.lower()] = table.owner
            owners = (plan.table(each).owner.name for each in table.inputs)
            read.setdefault(table.owner.name.lower(), []).extend(each for each in owners if each != table.owner.name)
    nodes: dict[str, LineageNode] = {}
    ids: dict[str, str] = {}

    def add(kind: Kind, thing: model.Source | model.Step | model.View | model.Sink, tables: Iterable[str]) -> None:
        inputs = tuple(dict.fromkeys(ids[each.lower()] for each in tables if each.lower() in ids))
        level = max((nodes[each].level + 1 for each in inputs), default=0)
        detail = plan.pipeline.without_secrets(detail_of(thing))
        nodes[f"{kind}/{thing.name}"] = LineageNode(f"{kind}/{thing.name}", kind, thing.name, detail, inputs, level)

    for name, thing in declared.items():
        add(Kind.SOURCE if isinstance(thing, model.Source) else Kind.STEP, thing, read[name])
        ids[name] = next(reversed(nodes))
    for view in plan.pipeline.views:
        add(Kind.VIEW, view, [view.input])
    for sink in plan.pipeline.sinks:
        add(Kind.SINK, sink, [sink.input])
    return list(nodes.values())


def detail_of(thing: model.Source | model.Step | model.View | model.Sink) -> str:
    """A declaration in a few words."""
    match thing:
        case model.Source():
            return origin_detail(thing.origin)
        case model.Step(operation=operation, expectations=expectations):
            names = [each.name for each in expectations]
            expected = f", expects {names[0]}" if len(names) == 1 else f", {len(names)} expectations" if names else ""
            return operation_detail(operation) + expected
        case model.View(content=model.Changes() as changes):
            return changes_detail(changes)
        case model.View(content=model.LatestRows(key=key)):
            return f"latest by {words(key)}"
        case model.View(content=model.RunningAggregate() as content):
            return words(each.name for each in content.aggregates) + (f" by {words(content.by)}" if content.by else "")
        case model.Sink(target=target):
            return target_detail(target)
    raise AssertionError(thing)


def words(names: Iterable[str]) -> str:
    return ", ".join(names)


def origin_detail(origin: model.Origin) -> str:
    match origin:
        case model.TopicOrigin(pattern=str() as pattern):
            return f"topics matching {pattern}"
        case model.TopicOrigin(topics=topics):
            return f"topic{'' if len(topics) == 1 else 's'} {words(topics)}"
        case model.FileOrigin():
            return f"{origin.format} {origin.path}"
        case model.JdbcOrigin(table=table):
            return f"jdbc {table or 'query'}"


def operation_detail(operation: operations.Operation) -> str:
    match operation:
        case operations.Aggregation(by=by, window=window):
            return "aggregate" + (f" by {words(by)}" if by else "") + window_detail(window)
        case operations.Deduplication(within=within):
            return f"first of {words(operation.key)}" + ("" if within is None else f" within {within}")
        case operations.StreamJoin():
            period = operation.within or Unbounded.FOREVER
            return f"{operation.how} join {operation.stream} on {words(operation.on)} within {period}"
        case operations.KeyedState():
            return f"state of {words(operation.key)}: {operation.processor}"
        case operations.PythonFunction(function=function):
            return f"python {function}"
        case operations.Sql():
            return "sql"


def window_detail(window: operations.Window | None) -> str:
    if window is None:
        return ""
    if window.gap is not None:
        return f", sessions with a gap of {window.gap}"
    return f", windows of {window.size}" + ("" if window.slide is None else f" every {window.slide}")


def changes_detail(changes: model.Changes) -> str:
    return f"{'history' if changes.keeps_history else 'state'} of {words(changes.key)} by {changes.sequence}"


def target_detail(target: model.Target) -> str:
    match target:
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
        case model.ConsoleTarget():
            return "console"


def facts_of(pipeline: model.Pipeline) -> list[str]:
    """Facts about the whole pipeline, for the heading of a drawing."""
    facts = [f"{pipeline.engine} engine", str(pipeline.delivery).replace("_", " ")]
    return facts + ([f"dead letters to {pipeline.dead_letters}"] if pipeline.dead_letters is not None else [])


MARKS = {Kind.SOURCE: "●", Kind.STEP: "○", Kind.VIEW: "▦", Kind.SINK: "▶"}
WIDTH = 80


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
