"""The realtime engine: Spark's real-time mode, which writes each record as soon as it is processed.

One row program writes all topics and the dead letters. Real-time mode runs all tasks of a query concurrently until the
batch ends, so a local Spark needs as many threads as there are tasks.
"""

from __future__ import annotations

import os
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from odradek.pipelines.definition.model import TopicOrigin
from odradek.pipelines.definition.spark_version import REALTIME_HINT, realtime_refusal
from odradek.pipelines.operating.checkpoints import checkpoint_uri
from odradek.pipelines.operating.fingerprints import REALTIME_FLOW
from odradek.pipelines.spark.computing.row_program import row_program
from odradek.pipelines.spark.computing.rows import NotCompilable
from odradek.pipelines.spark.engines.flow_queries import checkpoint_settings, query_settings
from odradek.pipelines.spark.engines.progress import Reports
from odradek.pipelines.spark.engines.running import Running
from odradek.pipelines.spark.reading.sources import read_stream, source_at
from odradek.pipelines.spark.sessions.failures import PipelineError
from odradek.pipelines.spark.sessions.private_names import PROCESSORS, or_plainly, private
from odradek.pipelines.spark.writing.kafka_records import producer_options

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamWriter

    from odradek.pipelines.definition.model import Pipeline, Start
    from odradek.pipelines.planning.plan import Plan
    from odradek.pipelines.spark.computing.counts import BatchReport
    from odradek.pipelines.spark.computing.row_program import RowProgram
    from odradek.pipelines.spark.writing.topics import Cluster

CHECKPOINT_EVERY = "30 seconds"  # checkpoint interval: the input that is replayed after a failure
AT_ONCE = {"linger.ms": "0"}


class RealtimeEngine:
    """Starts the single query of a plan; the rules guarantee one flow from a topic into topics."""

    def __init__(
        self,
        session: SparkSession,
        plan: Plan,
        cluster: Cluster,
        report: Callable[[BatchReport], None] = lambda _report: None,
        begin: Start | None = None,  # set by a reset
    ) -> None:
        self._session, self._plan, self._cluster = session, plan, cluster
        self._report, self._begin = report, begin

    def start(self) -> Running:
        pipeline = self._plan.pipeline
        if refusal := realtime_refusal():
            raise PipelineError(f"{pipeline.name}: {refusal}; {REALTIME_HINT}")
        program = self.program()
        master, processors = self._session.sparkContext.master or "", jvm_processors(self._session)
        check_threads(pipeline, tasks_of(pipeline, self._cluster), master, processors)
        steps = {each.name: each.owner.name for each in self._plan.tables.values()}
        reports = Reports(self._report, steps)
        reports.expect(REALTIME_FLOW, program.counts, is_whole=True)
        running = Running(reports)
        writer: Any = self._writer(program)  # missing in PySpark's type annotations
        self._cluster.create_awaited()
        with query_settings(self._session, checkpoint_settings(self._session, pipeline)):
            running.add(REALTIME_FLOW, writer.trigger(realTime=CHECKPOINT_EVERY).start())
        return running

    def program(self) -> RowProgram:
        pipeline, (flow,) = self._plan.pipeline, self._plan.flows
        source = next(each for each in self._plan.streams if each.name == flow.root)
        records = read_stream(self._session, source_at(source, self._begin), pipeline, self._cluster.partitions_of)
        try:
            return row_program(self._plan, replace(flow, name=REALTIME_FLOW), records)
        except NotCompilable as part:
            raise PipelineError(
                f"{pipeline.name}: the realtime engine cannot run SQL that is not known to give each row by itself: "
                f"{part}; write it in another way, or use engine: standard"
            ) from part

    def _writer(self, program: RowProgram) -> DataStreamWriter:
        ((producer, records),) = program.records_in(program.observed())
        writer = records.writeStream.queryName(f"{self._plan.pipeline.name}/{REALTIME_FLOW}").outputMode("update")
        writer = writer.option("checkpointLocation", checkpoint_uri(self._plan.pipeline, REALTIME_FLOW))
        return writer.format("kafka").options(**producer_options(producer, AT_ONCE))


LOCAL_MASTER = re.compile(r"local(?:\[\s*(\d+|\*)\s*(?:,.*)?\])?")


def local_threads(pipeline: Pipeline, cluster: Cluster) -> int:
    """Enough threads for this pipeline, and one more."""
    return max(os.cpu_count() or 1, tasks_of(pipeline, cluster) + 1)


def tasks_of(pipeline: Pipeline, cluster: Cluster) -> int:
    """The tasks of a pipeline: one for each partition of its stream at the start."""
    origins = [each.origin for each in pipeline.sources if each.is_stream and isinstance(each.origin, TopicOrigin)]
    return sum(cluster.at(each).partitions.get(topic, 1) for each in origins for topic in cluster.topics_of(each))


def check_threads(pipeline: Pipeline, tasks: int, master: str, processors: int) -> None:
    """Refuses a local master with too few threads, in which some records would never be read. The size of a cluster is
    not known before its executors have started."""
    threads = threads_of(master, processors)
    if threads is not None and tasks > threads:
        raise PipelineError(
            f"{pipeline.name}: the realtime engine runs {tasks} tasks at once, at least one for each partition that it "
            f"reads, and Spark's master {master} has threads for {threads}, so that some would never start; use "
            f"local[{tasks}], or remove the master"
        )


def threads_of(master: str, processors: int) -> int | None:
    """The threads of a local master on a JVM with this number of processors; None for a cluster."""
    found = LOCAL_MASTER.fullmatch(master)
    if found is None:
        return None
    written = found[1] or "1"
    return processors if written == "*" else int(written)


def jvm_processors(session: SparkSession) -> int:
    """The processors that Spark's JVM may use, which are fewer than the machine's in a container with a limit."""
    return or_plainly(
        PROCESSORS,
        lambda: int(private(session, "jvm").java.lang.Runtime.getRuntime().availableProcessors()),
        session.sparkContext.defaultParallelism,
    )
