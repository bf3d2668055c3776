"""Caches tables of databases for a time, instead of reading them in every batch.

Spark keeps a cached table under its plan. All sessions of the process read the table through one global view, so that
they share the plan and with it the copy, also in queries that were planned before. A copy that is older than `refresh`
is discarded, and the next batch that needs the table reads it again.
"""

from __future__ import annotations

import hashlib
import threading
import time
from typing import TYPE_CHECKING

from odradek.pipelines.spark.jdbc import driver_options

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame, SparkSession

    from odradek.pipelines.definition.model import JdbcOrigin
    from odradek.pipelines.definition.vocabulary import Duration

_LOCK = threading.Lock()  # flows load tables concurrently
_CACHED: set[tuple[str, str]] = set()  # Spark application and view


def refreshed(session: SparkSession, origin: JdbcOrigin, refresh: Duration, read: Callable[[], DataFrame]) -> DataFrame:
    """The rows of a table, read when they are first needed and again when they are older than `refresh`."""
    view = f"odradek_{hashlib.sha256(repr(origin).encode()).hexdigest()[:16]}"
    application = (str(session.sparkContext.applicationId), view)
    with _LOCK:
        if application not in _CACHED:
            frame = read()
            frame.persist()
            frame.createOrReplaceGlobalTempView(view)
            _CACHED.add(application)
            seconds = refresh.milliseconds / 1000
            threading.Thread(target=discard_every, args=(seconds, frame), name=view, daemon=True).start()
    driver_options(session, origin, origin.url)
    return session.table(f"global_temp.{view}")


def discard_every(seconds: float, frame: DataFrame) -> None:
    """Discards the copy at each interval, until Spark ends."""
    while True:
        time.sleep(seconds)
        try:
            frame.unpersist()
            frame.persist()
        except Exception:  # the session has been stopped
            return
