"""Checks that the realtime engine can run each step: it handles every record by itself, and runs no Python."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.pipelines.definition.checks_engines import add_realtime_error
from odradek.pipelines.definition.operations import PythonFunction
from odradek.pipelines.planning.state import State, state_of

if TYPE_CHECKING:
    from odradek.pipelines.definition.graph import Graph
    from odradek.pipelines.definition.model import Pipeline, Step
    from odradek.pipelines.definition.places import Problems
    from odradek.pipelines.planning.streams import Streams


def check_realtime_steps(pipeline: Pipeline, graph: Graph, streams: Streams, problems: Problems) -> None:
    for step in pipeline.steps:
        if step.name in streams.names:
            check_realtime_step(step, graph, streams, problems)


def check_realtime_step(step: Step, graph: Graph, streams: Streams, problems: Problems) -> None:
    if isinstance(step.operation, PythonFunction):
        problems.warning(
            step.place,
            f"step '{step.name}' must not use Python UDFs: real-time mode does not run Python",
            "use Spark's built-in functions, or SQL",
        )
    state = state_of(step, streams.names)
    if State.KEYED in state:
        add_realtime_error(problems, step, "step", "keeps state in Python, which real-time mode does not run")
    if State.DEDUPLICATION in state:
        add_realtime_error(
            problems, step, "step", "deduplicates records, and this engine handles each record by itself"
        )
    if State.AGGREGATION in state:
        add_realtime_error(problems, step, "step", "aggregates records, and this engine handles each record by itself")
    if State.STREAM_JOIN in state:
        read = dict.fromkeys(each for each in graph.inputs.get(step.name, ()) if each in streams.names)
        named = f"streams {' and '.join(read)}" if len(read) > 1 else f"stream {next(iter(read))} with itself"
        add_realtime_error(problems, step, "step", f"joins the {named}, which real-time mode does not support")
