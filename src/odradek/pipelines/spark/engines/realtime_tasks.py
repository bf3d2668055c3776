"""How many tasks the realtime engine runs: all at once until the batch ends, so that each needs a thread of its own."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from odradek.pipelines.definition.graph import build_graph
from odradek.pipelines.definition.model import TopicOrigin
from odradek.pipelines.planning.realtime_branches import outputs_of, root_of
from odradek.pipelines.spark.failures import PipelineError
from odradek.pipelines.spark.private_names import PROCESSORS, or_plainly, private

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from odradek.pipelines.definition.model import Pipeline, Source
    from odradek.pipelines.spark.topics import Cluster

LOCAL_MASTER = re.compile(r"local(?:\[\s*(\d+|\*)\s*(?:,.*)?\])?")


def local_threads(pipeline: Pipeline, cluster: Cluster) -> int:
    """Enough threads for this pipeline, in one pass or in branches, and one more."""
    return max(os.cpu_count() or 1, branch_tasks(pipeline, cluster) + 1)


def pass_tasks(pipeline: Pipeline, cluster: Cluster) -> int:
    """The tasks of a pipeline that runs in one pass: each partition of its streams is read once."""
    return sum(partitions_by_source(pipeline, cluster).values())


def branch_tasks(pipeline: Pipeline, cluster: Cluster) -> int:
    """The tasks of a pipeline whose outputs are branches: each branch reads each partition of its streams."""
    partitions = partitions_by_source(pipeline, cluster)
    graph = build_graph(pipeline)
    roots = map(root_of, outputs_of(pipeline, graph))
    return sum(partitions.get(name, 0) for root in roots for name in graph.upstream(root))


def partitions_by_source(pipeline: Pipeline, cluster: Cluster) -> dict[str, int]:
    """The partitions of each stream of topics at the start."""
    return {
        source.name: sum(cluster.at(origin).partitions.get(topic, 1) for topic in cluster.topics_of(origin))
        for source, origin in streams_of_topics(pipeline)
    }


def streams_of_topics(pipeline: Pipeline) -> list[tuple[Source, TopicOrigin]]:
    return [(each, each.origin) for each in pipeline.sources if each.is_stream and isinstance(each.origin, TopicOrigin)]


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
