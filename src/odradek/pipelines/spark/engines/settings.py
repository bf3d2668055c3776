"""Spark settings of single queries: a query keeps the session's settings as of its start."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from odradek.pipelines.spark.checkpoints import checkpoint_folder

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyspark.sql import SparkSession

    from odradek.pipelines.definition.model import Pipeline

# For each file that Spark writes to a local folder, Hadoop starts processes: `readlink` several times, and `chmod` for
# the file and for its checksum. This checkpoint file manager renames without `readlink`. Spark's own checksums are off,
# because Hadoop has checksums already and each of Spark's would be one more file.
LOCAL_CHECKPOINTS = {
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
    "spark.sql.streaming.checkpoint.fileChecksum.enabled": "false",
}


def checkpoint_settings(session: SparkSession, pipeline: Pipeline) -> dict[str, str]:
    """Settings for a query whose checkpoint is on a local disk; settings of the user take precedence."""
    if not is_local(session, checkpoint_folder(pipeline)):
        return {}
    return {key: value for key, value in LOCAL_CHECKPOINTS.items() if key not in pipeline.spark}


def is_local(session: SparkSession, folder: str) -> bool:
    """Whether the path is on a local disk; a path without a scheme is on Hadoop's default file system."""
    default = session.sparkContext._jsc.hadoopConfiguration().get("fs.defaultFS", "file:///")  # noqa: SLF001 - PySpark has no public API for it
    return (folder if "://" in folder else default).startswith("file:")


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
