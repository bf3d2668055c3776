"""The lineage of a plan: its declarations, each with those that it reads. Hidden tables are parts of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.pipelines.definition.lineage import nodes_of
from odradek.pipelines.definition.model import View

if TYPE_CHECKING:
    from odradek.pipelines.definition.lineage import LineageNode
    from odradek.pipelines.planning.plan import Plan


def lineage_of(plan: Plan) -> list[LineageNode]:
    """All nodes in topological order: sources and steps, then views, then sinks."""
    read: dict[str, dict[str, None]] = {}
    for table in plan.tables.values():
        if not isinstance(table.owner, View):
            inputs = read.setdefault(table.owner.name, {})
            inputs.update(dict.fromkeys(plan.table(each).owner.name for each in table.inputs))
    return nodes_of(
        plan.pipeline, {name: tuple(each for each in inputs if each != name) for name, inputs in read.items()}
    )
