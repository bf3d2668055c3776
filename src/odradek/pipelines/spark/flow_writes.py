"""What a flow of the old plan writes exactly once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.pipelines.definition.model import TableTarget, TopicTarget
from odradek.pipelines.definition.operations import PythonFunction
from odradek.pipelines.spark.reading.sources import is_topic
from odradek.pipelines.spark.writing.databases import database_url
from odradek.pipelines.spark.writing.delivery import FlowWrites

if TYPE_CHECKING:
    from odradek.pipelines.definition.model import Pipeline
    from odradek.pipelines.planning.flow import Flow


def writes_of(pipeline: Pipeline, flow: Flow) -> FlowWrites:
    has_records = any(isinstance(each.target, TopicTarget) for each in flow.sinks) or bool(flow.owned)
    tables = [each.target.url for each in flow.sinks if isinstance(each.target, TableTarget)]
    databases = sorted({database_url(pipeline, url) for url in (*tables, *(each.url for each in flow.views))})
    functions = {each.name for each in pipeline.steps if isinstance(each.operation, PythonFunction)}
    is_read = any(each.name == flow.root and is_topic(each) for each in pipeline.sources)
    is_repeatable = is_read and flow.aggregate is None and not functions.intersection(flow.after)
    return FlowWrites(flow.name, is_repeatable, has_records, tuple(databases), has_batches=flow.files is None)
