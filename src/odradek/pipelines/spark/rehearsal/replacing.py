"""Changes a pipeline for a test: steps whose rows are given, steps whose rows are read, and sources without rows."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from odradek.pipelines.definition.ddl import parse_ddl
from odradek.pipelines.definition.graph import build_graph, used_names
from odradek.pipelines.definition.model import (
    FileOrigin,
    RecordFormat,
    RecordSchema,
    Sink,
    Source,
    TopicTarget,
)
from odradek.pipelines.definition.operations import Sql
from odradek.pipelines.definition.vocabulary import FileFormat
from odradek.pipelines.planning.state import State, state_of
from odradek.pipelines.planning.streams import Streams, streaming_names

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from odradek.pipelines.definition.graph import Graph
    from odradek.pipelines.definition.model import Pipeline, Step, Watermark

GIVEN = "__given"
STEP_SINK = "__rows_of_"


def given_name(step: str) -> str:
    """The source that has the rows given for a step."""
    return f"{step}{GIVEN}"


def with_given_steps(pipeline: Pipeline, schemas: Mapping[str, str]) -> Pipeline:
    """The pipeline with sources in place of steps whose rows are given; `schemas` has their columns in DDL."""
    graph = build_graph(pipeline)
    streams = streaming_names(pipeline, graph)
    sources = [
        Source(
            given_name(name),
            FileOrigin("", FileFormat.JSON),
            RecordFormat(schema=RecordSchema(parse_ddl(ddl))),
            is_stream=name in streams,
        )
        for name, ddl in schemas.items()
    ]
    steps = [
        replace(
            step,
            operation=Sql(f"select * from {given_name(step.name)}"),
            watermark=watermark_at(pipeline, graph, step, schemas[step.name]),
        )
        if step.name in schemas
        else step
        for step in pipeline.steps
    ]
    return replace(pipeline, sources=(*pipeline.sources, *sources), steps=tuple(steps))


def watermark_at(pipeline: Pipeline, graph: Graph, step: Step, ddl: str) -> Watermark | None:
    """The watermark that the rows of a step have: its own, or the nearest before it whose event time the step keeps."""
    times = Streams.of(pipeline, graph).times[step.name].moments
    kept = next((each.name for each in parse_ddl(ddl) if each.name.lower() in times), None)
    marks = {each.name: each.watermark for each in pipeline.sources}
    marks |= {each.name: each.watermark for each in pipeline.steps}
    found = [mark for name in graph.upstream(step.name) if (mark := marks[name]) is not None]
    return replace(found[-1], column=kept) if found and kept is not None else None


def with_step_sinks(pipeline: Pipeline, columns: Mapping[str, Sequence[str]]) -> Pipeline:
    """The pipeline with a topic for each step whose rows are read; `columns` has all columns of the step."""
    added = [
        Sink(step_sink(name), name, TopicTarget(step_sink(name), value=tuple(found))) for name, found in columns.items()
    ]
    return replace(pipeline, sinks=(*pipeline.sinks, *added))


def step_sink(step: str) -> str:
    return f"{STEP_SINK}{step}"


def appended_steps(pipeline: Pipeline, names: Collection[str]) -> list[str]:
    """The named steps whose rows a streaming query appends: those of a stream without an aggregation."""
    graph = build_graph(pipeline)
    streams = streaming_names(pipeline, graph)
    changing = {each.name for each in pipeline.steps if State.AGGREGATION in state_of(each, streams)}
    return [name for name in names if name in streams and not changing.intersection(graph.upstream(name))]


def without(pipeline: Pipeline, missing: Collection[str], original: Pipeline) -> Pipeline:
    """The pipeline without sources, without the steps, sinks and views behind them, and without unused steps."""
    graph = build_graph(pipeline)
    used = used_names(pipeline, graph) | used_names(original, build_graph(original))
    gone = {name for name in graph.order if not set(missing).isdisjoint(graph.upstream(name))}
    return replace(
        pipeline,
        sources=tuple(each for each in pipeline.sources if each.name not in gone),
        steps=tuple(each for each in pipeline.steps if each.name not in gone and each.name in used),
        sinks=tuple(each for each in pipeline.sinks if each.input not in gone),
        views=tuple(each for each in pipeline.views if each.input not in gone),
    )
