"""Copies of static tables: all jobs of a batch read one copy, and those with `refresh` are kept for that time.

A batch runs several jobs: it counts, writes each output, and writes dead letters. A table of a database may change
between two of them, and so may a topic that is read to its end. If each job read it again, a row could be in neither
the output nor the dead letters.

Streaming queries are planned once, so the plan of a copy with `refresh` must stay: its rows are discarded at each
interval, and the next batch that needs them reads the table again. Spark keeps cached rows under their plan. All
sessions of the process read a copy through one global view, so that they share the plan.
"""

from __future__ import annotations

import hashlib
import threading
import time
import uuid
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - its usual name

from odradek.pipelines.definition.model import FileOrigin
from odradek.pipelines.spark.reading.jdbc import driver_options

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame, SparkSession

    from odradek.pipelines.definition.model import JdbcOrigin, Source
    from odradek.pipelines.definition.vocabulary import Duration

READ = "__read"
_LOCK = threading.Lock()  # flows read tables concurrently
_VIEWS: dict[tuple[str, str], str] = {}  # by Spark application and table


class BatchSources:
    """Reads static sources with `load`, and keeps their rows until `unpersist`."""

    def __init__(self, load: Callable[[Source], DataFrame]) -> None:
        self._load = load
        self._kept: list[DataFrame] = []

    def read(self, source: Source) -> DataFrame:
        """The rows of a source. The first job that needs them reads them, and the others get the same rows."""
        frame = self._load(source)
        if isinstance(source.origin, FileOrigin):
            return frame  # Spark lists the files once for a frame
        # Spark shares the cached rows of equal plans. The id makes this plan different from those of other batches.
        self._kept.append(frame.withColumn(READ, F.lit(uuid.uuid4().hex)).persist())
        return self._kept[-1].drop(READ)

    def unpersist(self) -> None:
        for each in self._kept:
            each.unpersist()


def refreshed(session: SparkSession, origin: JdbcOrigin, refresh: Duration, read: Callable[[], DataFrame]) -> DataFrame:
    """The rows of a table: read when they are first needed, and again when they are older than `refresh`."""
    key = (str(session.sparkContext.applicationId), repr(origin))
    with _LOCK:
        if key not in _VIEWS:
            frame, view = read().persist(), f"odradek_{hashlib.sha256(repr(key).encode()).hexdigest()[:16]}"
            frame.createOrReplaceGlobalTempView(view)
            seconds = refresh.milliseconds / 1000
            threading.Thread(target=discard_every, args=(seconds, frame), name=view, daemon=True).start()
            _VIEWS[key] = view
    driver_options(session, origin, origin.url)
    return session.table(f"global_temp.{_VIEWS[key]}")


def discard_every(seconds: float, frame: DataFrame) -> None:
    """Discards the rows at each interval, until Spark ends."""
    while True:
        time.sleep(seconds)
        try:
            frame.unpersist()
            frame.persist()
        except Exception:  # the session has been stopped
            return
