"""Copies of static tables: all jobs of a batch read one copy, and those with `refresh` are kept for that time.

A batch runs several jobs: it counts, writes each output, and writes dead letters. A table of a database may change
between two of them, and so may a topic that is read to its end. If each job read it again, a row could be in neither
the output nor the dead letters. With `refresh`, batches share a copy. The next batch replaces one that is too old, and
the last batch that reads it discards it.

Streaming queries are planned once, so the plan of a copy with `refresh` must stay: its rows are discarded at each
interval, and the next batch that needs them reads the table again. Spark keeps cached rows under their plan. All
sessions of the process read a copy through one global view, so that they share the plan.
"""

from __future__ import annotations

import hashlib
import threading
import time
import uuid
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - its usual name

from odradek.pipelines.definition.model import FileOrigin, JdbcOrigin
from odradek.pipelines.spark.reading.jdbc import driver_options

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame, SparkSession

    from odradek.pipelines.definition.model import Source
    from odradek.pipelines.definition.vocabulary import Duration

READ = "__read"
_LOCK = threading.Lock()  # flows read tables concurrently
_VIEWS: dict[tuple[str, str], str] = {}  # by Spark application and table


@dataclass(slots=True, eq=False)
class Copy:
    """The cached rows of a table that batches share."""

    frame: DataFrame
    read_at_s: float
    readers: int = 0


_LATEST: dict[tuple[str, str, str], Copy] = {}  # by Spark application, file of the definition and source


class BatchSources:
    """Reads static sources with `load`, and keeps their rows until `unpersist`."""

    def __init__(self, session: SparkSession, load: Callable[[Source], DataFrame]) -> None:
        self._session, self._load = session, load
        self._releases: list[Callable[[], object]] = []

    def read(self, source: Source) -> DataFrame:
        """The rows of a source. The first job that needs them reads them, and the others get the same rows."""
        origin = source.origin
        if isinstance(origin, FileOrigin):
            return self._load(source)  # Spark lists the files once for a frame
        if isinstance(origin, JdbcOrigin) and origin.refresh is not None:
            return self._shared(source, origin, origin.refresh)
        kept = persisted(self._load(source))
        self._releases.append(kept.unpersist)
        return kept.drop(READ)

    def _shared(self, source: Source, origin: JdbcOrigin, refresh: Duration) -> DataFrame:
        """The latest copy of a table, read by the session of this batch."""
        key = (str(self._session.sparkContext.applicationId), source.place.file, repr(source))
        view = f"odradek_batches_{hashlib.sha256(repr(key).encode()).hexdigest()[:16]}"
        plain = replace(source, origin=replace(origin, refresh=None))
        with _LOCK:
            copy = old = _LATEST.get(key)
            if copy is None or time.monotonic() - copy.read_at_s > refresh.milliseconds / 1000:
                copy = _LATEST[key] = Copy(persisted(self._load(plain)), time.monotonic())
                copy.frame.createOrReplaceGlobalTempView(view)
                if old is not None and not old.readers:
                    old.frame.unpersist()
            copy.readers += 1
            self._releases.append(lambda: give_back(key, copy))
            driver_options(self._session, origin, origin.url)
            return self._session.table(f"global_temp.{view}").drop(READ)

    def unpersist(self) -> None:
        for release in self._releases:
            release()


def persisted(frame: DataFrame) -> DataFrame:
    """Spark shares the cached rows of equal plans. The id makes this plan different from those of other copies."""
    return frame.withColumn(READ, F.lit(uuid.uuid4().hex)).persist()


def give_back(key: tuple[str, str, str], copy: Copy) -> None:
    with _LOCK:
        copy.readers -= 1
        if not copy.readers and _LATEST.get(key) is not copy:
            copy.frame.unpersist()


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
