"""All checks of a definition, those of its plan included. None needs Spark or a broker."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.pipelines.definition.checks import check_definition
from odradek.pipelines.definition.graph import build_graph
from odradek.pipelines.definition.vocabulary import Engine
from odradek.pipelines.planning.realtime_checks import check_realtime
from odradek.pipelines.planning.session_filters import check_session_filters
from odradek.pipelines.planning.static_checks import check_static_expectations
from odradek.pipelines.planning.stream_checks import check_streams, check_within
from odradek.pipelines.planning.stream_join_checks import check_stream_join
from odradek.pipelines.planning.streams import Streams

if TYPE_CHECKING:
    from odradek.pipelines.definition.model import Parsed
    from odradek.pipelines.definition.places import Problems


def check_pipeline(parsed: Parsed, problems: Problems) -> None:
    """Runs all checks and reports every problem."""
    check_definition(parsed, problems)
    pipeline = parsed.pipeline
    graph = build_graph(pipeline)
    streams = Streams.with_types(pipeline, graph)
    for step in pipeline.steps:
        check_within(pipeline, step, graph, streams, problems)
        check_stream_join(step, graph, streams, problems)
        check_session_filters(step, problems)
    if pipeline.engine is not Engine.BATCH:
        check_streams(pipeline, graph, streams, problems)
        check_static_expectations(pipeline, streams, problems)
    if pipeline.engine is Engine.REALTIME:
        check_realtime(pipeline, streams, problems)
