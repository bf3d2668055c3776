"""The steps with an expectation whose `otherwise` is `fail`, by where a flow evaluates them. Pure.

Every flow that reads such a step evaluates the check itself: in the streaming query up to its root, behind it in each
batch. A batch is checked completely before anything of it is written.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.pipelines.definition.vocabulary import Otherwise

if TYPE_CHECKING:
    from odradek.pipelines.definition.graph import Graph
    from odradek.pipelines.definition.model import Pipeline, Step
    from odradek.pipelines.planning.flow import Flow


def in_query(pipeline: Pipeline, graph: Graph, flow: Flow) -> list[Step]:
    """Failing steps that are evaluated by the streaming query, before the batch."""
    names = set(graph.upstream(flow.root))
    if flow.aggregate is None and flow.files is None:
        names.discard(flow.root)
    return [each for each in pipeline.steps if can_fail(each) and each.name in names]


def in_batch(pipeline: Pipeline, graph: Graph, flow: Flow) -> list[Step]:
    """Failing steps that are evaluated in each batch of the root's rows, including those of static sources."""
    inputs = {*(each.input for each in flow.sinks), *(each.input for each in flow.views)}
    read = {name for each in inputs for name in graph.upstream(each)}
    before = {each.name for each in in_query(pipeline, graph, flow)}
    return [each for each in pipeline.steps if can_fail(each) and each.name in read - before]


def can_fail(step: Step) -> bool:
    return any(each.otherwise is Otherwise.FAIL for each in step.expectations)
