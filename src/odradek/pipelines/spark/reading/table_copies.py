"""Copies of static tables: all jobs of a batch read one copy, and copies with `refresh` are kept for that time.

A batch runs several jobs: it counts, writes each output, and writes dead letters. A table of a database may change
between two of them, and so may a topic that is read to its end. If each job read it again, a row could be in neither
the output nor the dead letters. With `refresh` batches share a copy. One that is too old is replaced by the next batch
that needs the table, and discarded when the last batch that reads it has ended.

Streaming queries are planned once, so the plan of their copy must stay: its rows are discarded at each interval, and
the next batch that needs them reads the table again. Spark keeps cached rows under their plan. All sessions of the
process read a copy through one global view, so that they share the plan.
"""

from __future__ import annotations

import hashlib
import itertools
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

    Key = tuple[str, ...]  # Spark application, table; of a copy for batches also the directory of the definition

READ = "__read"


@dataclass(slots=True, eq=False)
class Copy:
    """The cached rows of a table, behind a global view."""

    frame: DataFrame
    view: str
    read_at_s: float
    readers: int = 0

    @classmethod
    def of(cls, key: Key, read: Callable[[], DataFrame]) -> Copy:
        frame = read().persist()
        view = f"odradek_{hashlib.sha256(repr(key).encode()).hexdigest()[:16]}_{next(_NUMBERS)}"
        frame.createOrReplaceGlobalTempView(view)
        return cls(frame, view, time.monotonic())

    def rows(self, session: SparkSession, origin: JdbcOrigin) -> DataFrame:
        driver_options(session, origin, origin.url)
        return session.table(f"global_temp.{self.view}")

    def discard(self) -> None:
        self.frame.unpersist()
        self.frame.sparkSession.catalog.dropGlobalTempView(self.view)


_LOCK = threading.Lock()  # flows read tables concurrently
_NUMBERS = itertools.count()
_LATEST: dict[Key, Copy] = {}  # for batches
_REFRESHED: dict[Key, Copy] = {}  # for streaming queries


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
            key = (str(self._session.sparkContext.applicationId), repr(origin), self._directory)
            copy = borrowed(key, origin.refresh, lambda: self._load(plain))
            self._releases.append(lambda: give_back(key, copy))
            return copy.rows(self._session, origin)
        # Spark shares the cached rows of equal plans. The id makes this plan different from those of other batches.
        kept = self._load(source).withColumn(READ, F.lit(uuid.uuid4().hex)).persist()
        self._releases.append(kept.unpersist)
        return kept.drop(READ)

    def unpersist(self) -> None:
        for release in self._releases:
            release()


def borrowed(key: Key, refresh: Duration, read: Callable[[], DataFrame]) -> Copy:
    """The latest copy for batches, which `give_back` returns; a copy that is too old is replaced."""
    with _LOCK:
        copy = old = _LATEST.get(key)
        if copy is None or time.monotonic() - copy.read_at_s > refresh.milliseconds / 1000:
            copy = _LATEST[key] = Copy.of(key, read)
            if old is not None and not old.readers:
                old.discard()
        copy.readers += 1
    return copy


def give_back(key: Key, copy: Copy) -> None:
    with _LOCK:
        copy.readers -= 1
        if not copy.readers and _LATEST.get(key) is not copy:
            copy.discard()


def refreshed(session: SparkSession, origin: JdbcOrigin, refresh: Duration, read: Callable[[], DataFrame]) -> DataFrame:
    """The rows for a streaming query: read when they are first needed, and again when they are older than `refresh`."""
    key = (str(session.sparkContext.applicationId), repr(origin))
    with _LOCK:
        if key not in _REFRESHED:
            copy = _REFRESHED[key] = Copy.of(key, read)
            seconds = refresh.milliseconds / 1000
            threading.Thread(target=discard_every, args=(seconds, copy.frame), name=copy.view, daemon=True).start()
    return _REFRESHED[key].rows(session, origin)


def discard_every(seconds: float, frame: DataFrame) -> None:
    """Discards the rows at each interval, until Spark ends."""
    while True:
        time.sleep(seconds)
        try:
            frame.unpersist()
            frame.persist()
        except Exception:  # the session has been stopped
            return
