"""The streaming part of a flow: the frame up to its root, what it observes, and the settings that its query needs.

A query keeps the session's settings as of its start."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from odradek.pipelines.definition.model import FilesTarget, Source, TopicOrigin
from odradek.pipelines.definition.operations import Deduplication, KeyedState, StreamJoin
from odradek.pipelines.definition.vocabulary import StateClock
from odradek.pipelines.operating.checkpoints import checkpoint_folder
from odradek.pipelines.planning.plan import PairSql
from odradek.pipelines.spark.computing.keyed_rows import sorts_batches
from odradek.pipelines.spark.computing.tables import Tables
from odradek.pipelines.spark.frames import quoted, shows_records, visible_names
from odradek.pipelines.spark.sessions.private_names import CHECKPOINTS, NAMES, or_plainly, private
from odradek.pipelines.spark.sessions.session import PROVIDER, ROCKSDB

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from pyspark.sql import DataFrame, SparkSession

    from odradek.pipelines.definition.model import Pipeline
    from odradek.pipelines.planning.plan import Flow, Plan
    from odradek.pipelines.spark.computing.counts import Count

UNCHECKED = {"spark.sql.streaming.unsupportedOperationCheck": "false"}  # of a query with operators that Spark refuses
# For each file that Spark writes to a local folder, Hadoop starts processes: `readlink` several times, and `chmod` for
# the file and for its checksum. This checkpoint file manager renames without `readlink`. Spark's own checksums are off,
# because Hadoop has checksums already and each of Spark's would be one more file.
MANAGER = "spark.sql.streaming.checkpointFileManagerClass"
CHECKSUMS = "spark.sql.streaming.checkpoint.fileChecksum.enabled"
# To count the rows of the state, RocksDB looks up each key that is written or removed. A join of streams writes and
# removes two keys for each row and needs none of these look-ups itself. Checkpoints may be continued with either value.
COUNTED_ROWS = "spark.sql.streaming.stateStore.rocksdb.trackTotalNumberOfRows"


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


def checkpoint_settings(session: SparkSession, pipeline: Pipeline) -> dict[str, str]:
    """Settings for a query whose checkpoint is on a local disk; settings of the user take precedence."""
    if not is_local(checkpoint_folder(pipeline)):
        return {}
    manager = or_plainly(CHECKPOINTS, lambda: checkpoint_manager(session), None)
    settings = {**({} if manager is None else {MANAGER: manager}), CHECKSUMS: "false"}
    return {key: value for key, value in settings.items() if key not in pipeline.spark}


def state_settings(pipeline: Pipeline, *, has_join: bool) -> dict[str, str]:
    """Settings for a query with state, which may have a join of streams; settings of the user take precedence."""
    is_counted = not has_join or COUNTED_ROWS in pipeline.spark or not is_in_rocksdb(pipeline)
    return {} if is_counted else {COUNTED_ROWS: "false"}


def counts_state_rows(pipeline: Pipeline, settings: Mapping[str, str]) -> bool:
    """Whether Spark counts the rows in the state of a query with these settings."""
    is_set = {**pipeline.spark, **settings}.get(COUNTED_ROWS, "true").lower() != "false"
    return is_set or not is_in_rocksdb(pipeline)


def is_in_rocksdb(pipeline: Pipeline) -> bool:
    """Whether the pipeline keeps its state in RocksDB; other stores always count rows."""
    return pipeline.spark.get(PROVIDER, ROCKSDB) == ROCKSDB


def checkpoint_manager(session: SparkSession) -> str:
    """The class of the checkpoint file manager; fails if this Spark lacks it."""
    name = NAMES["checkpoint files"].path
    private(session, "jvm").java.lang.Class.forName(name)
    return name


def is_local(folder: str) -> bool:
    """Whether the folder of checkpoints is on a local disk (see `checkpoint_uri`)."""
    return "://" not in folder or folder.startswith("file:")


@contextmanager
def query_settings(session: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    """Applies settings to queries that are started within the block."""
    before = {key: session.conf.get(key, None) for key in settings}
    try:
        for key, value in settings.items():
            session.conf.set(key, value)
        yield
    finally:
        for key, old in before.items():
            session.conf.unset(key)
            if old is not None:
                session.conf.set(key, old)
