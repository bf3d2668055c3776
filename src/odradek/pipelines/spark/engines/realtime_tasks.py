"""How many tasks the realtime engine runs: all at once until the batch ends, so that each needs a thread of its own."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from odradek.pipelines.definition.model import TopicOrigin
from odradek.pipelines.spark.sessions.failures import PipelineError
from odradek.pipelines.spark.sessions.private_names import PROCESSORS, or_plainly, private

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from odradek.pipelines.definition.model import Pipeline
    from odradek.pipelines.spark.writing.topics import Cluster

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
