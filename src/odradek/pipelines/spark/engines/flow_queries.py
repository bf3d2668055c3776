"""The streaming part of a flow: the frame up to its root, what it observes, and the settings that its query needs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.pipelines.definition.model import FilesTarget, Source, TopicOrigin
from odradek.pipelines.definition.operations import Deduplication, KeyedState, StreamJoin
from odradek.pipelines.definition.vocabulary import StateClock
from odradek.pipelines.planning.plan import PairSql
from odradek.pipelines.spark.computing.keyed_rows import sorts_batches
from odradek.pipelines.spark.computing.tables import Tables
from odradek.pipelines.spark.engines.settings import UNCHECKED, state_settings
from odradek.pipelines.spark.frames import quoted, shows_records, visible_names

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame, SparkSession

    from odradek.pipelines.planning.plan import Flow, Plan
    from odradek.pipelines.spark.computing.counts import Count


def query_of(
    session: SparkSession, plan: Plan, flow: Flow, load: Callable[[Source], DataFrame]
) -> tuple[DataFrame, list[Count]]:
    """The rows of the root as the query has them, and the counts that it observes. The root's records are parsed, and
    its rows are checked, in each batch."""
    tables = Tables(session, plan, load, flow.mode, flow.counted)
    root = plan.table(flow.root).made_by
    if flow.files is not None and isinstance(flow.files.target, FilesTarget):
        rows = tables.rows(flow.root)
        names = visible_names(rows.columns, shows_records=shows_records(rows))
        frame = rows.select(*map(quoted, dict.fromkeys((*names, *flow.files.target.partition_by))))
    elif isinstance(root, Source) and isinstance(root.origin, TopicOrigin):
        frame = load(root)
    else:
        frame = tables.before_checks(flow.root)
    return frame, [count for name in sorted(flow.counted) for count in tables.observed(name)]


def settings_of(session: SparkSession, plan: Plan, flow: Flow) -> dict[str, str]:
    """Settings for the query of a flow. Spark refuses to sort the rows of a stream: the analysis has checked a query
    that does so without the sort."""
    made = [plan.table(each).made_by for each in plan.upstream(flow.root)]
    has_join = any(isinstance(each, StreamJoin | PairSql) for each in made)
    settings = state_settings(plan.pipeline, has_join=has_join)
    if sorts_batches(session) and any(isinstance(each, Deduplication) and each.within for each in made):
        settings |= UNCHECKED
    return settings


def keeps_processing_time(plan: Plan, flow: Flow) -> bool:
    made = (plan.table(each).made_by for each in plan.upstream(flow.root))
    return any(isinstance(each, KeyedState) and each.clock is StateClock.PROCESSING for each in made)
