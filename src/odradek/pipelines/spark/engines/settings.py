"""Settings of single queries: a query keeps those that its session has when it starts."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from odradek.pipelines.spark.checkpoints import checkpoint_folder

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyspark.sql import SparkSession

    from odradek.pipelines.definition.model import Pipeline

# In a folder of this machine, Spark starts processes for each file that it writes: `readlink` several times to find it,
# `chmod` for it and for Hadoop's checksum of it. Renamed by the plain way it needs no looking for; and what Hadoop has
# checksums of needs no others, which would be files too.
LOCAL_CHECKPOINTS = {
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
    "spark.sql.streaming.checkpoint.fileChecksum.enabled": "false",
}


def checkpoint_settings(session: SparkSession, pipeline: Pipeline) -> dict[str, str]:
    """Of a query whose checkpoint is on this machine; what a user has set stays."""
    if not is_local(session, checkpoint_folder(pipeline)):
        return {}
    return {key: value for key, value in LOCAL_CHECKPOINTS.items() if key not in pipeline.spark}


def is_local(session: SparkSession, folder: str) -> bool:
    """A path that does not say where it is, is where Hadoop's settings say."""
    default = session.sparkContext._jsc.hadoopConfiguration().get("fs.defaultFS", "file:///")  # noqa: SLF001 - PySpark has no name for it
    return (folder if "://" in folder else default).startswith("file:")


@contextmanager
def query_settings(session: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    """What is started within has these."""
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
