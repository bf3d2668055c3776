"""The static sources of one batch: each is read once for all jobs of the batch.

A batch runs several jobs: it counts, writes each output, and writes dead letters. A table of a database may change
between two of them, and so may a topic that is read to its end. If each job read it again, a row could be in neither
the output nor the dead letters.
"""

from __future__ import annotations

import uuid
from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - its usual name

from odradek.pipelines.definition.model import FileOrigin, JdbcOrigin
from odradek.pipelines.spark.table_copies import copied_rows

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame, SparkSession

    from odradek.pipelines.definition.model import Source

READ = "__read"


class BatchSources:
    """Reads static sources with `load`, and keeps their rows until `unpersist`. Relative paths are in `directory`."""

    def __init__(self, session: SparkSession, directory: str, load: Callable[[Source], DataFrame]) -> None:
        self._session = session
        self._directory = directory
        self._load = load
        self._releases: list[Callable[[], object]] = []

    def read(self, source: Source) -> DataFrame:
        """The rows of a source. The first job that needs them reads them, and the others get the same rows."""
        origin = source.origin
        if isinstance(origin, FileOrigin):
            return self._load(source)  # Spark lists the files once for a frame
        if isinstance(origin, JdbcOrigin) and origin.refresh is not None:
            plain = replace(source, origin=replace(origin, refresh=None))
            rows, release = copied_rows(self._session, origin, self._directory, lambda: self._load(plain))
            self._releases.append(release)
            return rows
        # Spark shares the cached rows of equal plans. The id makes this plan different from those of other batches.
        kept = self._load(source).withColumn(READ, F.lit(uuid.uuid4().hex)).persist()
        self._releases.append(kept.unpersist)
        return kept.drop(READ)

    def unpersist(self) -> None:
        for release in self._releases:
            release()
