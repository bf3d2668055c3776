"""Copies of tables of databases for batches: all jobs of a batch read one copy, and batches share it for `refresh`.

A copy that is too old is replaced by the next batch that needs the table, and discarded when the last batch that reads
it has ended. Streaming queries, which are planned once, read the copy of `refreshing`.
"""

from __future__ import annotations

import hashlib
import itertools
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from odradek.pipelines.spark.jdbc import driver_options

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame, SparkSession

    from odradek.pipelines.definition.model import JdbcOrigin

Key = tuple[str, str, str]  # Spark application, directory of the definition, table

_LOCK = threading.Lock()  # flows read tables concurrently
_NUMBERS = itertools.count()


@dataclass(slots=True, eq=False)
class Copy:
    """The cached rows of a table. All sessions read them through one global view, so that they share the plan."""

    frame: DataFrame
    view: str
    read_at_s: float
    readers: int = 0

    def discard(self) -> None:
        self.frame.unpersist()
        self.frame.sparkSession.catalog.dropGlobalTempView(self.view)


_LATEST: dict[Key, Copy] = {}


def copied_rows(
    session: SparkSession, origin: JdbcOrigin, directory: str, read: Callable[[], DataFrame]
) -> tuple[DataFrame, Callable[[], None]]:
    """The rows of the table in its latest copy, and a function that gives the copy back."""
    assert origin.refresh is not None
    key = (str(session.sparkContext.applicationId), directory, repr(origin))
    with _LOCK:
        copy = _LATEST.get(key)
        if copy is None or time.monotonic() - copy.read_at_s > origin.refresh.milliseconds / 1000:
            copy = _LATEST[key] = replaced(copy, key, read)
        copy.readers += 1
    driver_options(session, origin, origin.url)
    return session.table(f"global_temp.{copy.view}"), lambda: give_back(key, copy)


def replaced(old: Copy | None, key: Key, read: Callable[[], DataFrame]) -> Copy:
    frame = read().persist()
    name = hashlib.sha256(repr(key).encode()).hexdigest()[:16]
    made = Copy(frame, f"odradek_{name}_{next(_NUMBERS)}", time.monotonic())
    frame.createOrReplaceGlobalTempView(made.view)
    if old is not None and not old.readers:
        old.discard()
    return made


def give_back(key: Key, copy: Copy) -> None:
    with _LOCK:
        copy.readers -= 1
        if not copy.readers and _LATEST.get(key) is not copy:
            copy.discard()
