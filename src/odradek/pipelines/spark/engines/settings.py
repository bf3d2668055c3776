"""Settings of single queries: a query keeps those that its session has when it starts."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from odradek.pipelines.spark.checkpoints import checkpoint_folder

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyspark.sql import SparkSession

    from odradek.pipelines.definition.model import Pipeline

# In a folder of this machine, Spark starts processes for each file that it writes: `readlink` to find it, `chmod` for
# it and for its checksum: a good part of what a small batch takes. Where files are renamed by the plain way and have
# no checksums of Hadoop's, one `chmod` is left; Spark's own checksums stay.
LOCAL_CHECKPOINTS = {
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
    "fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
    "fs.file.impl.disable.cache": "true",  # else the one that the session has is taken
}


def checkpoint_settings(pipeline: Pipeline) -> dict[str, str]:
    if "://" in checkpoint_folder(pipeline):
        return {}
    return {key: value for key, value in LOCAL_CHECKPOINTS.items() if key not in pipeline.spark}


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
