"""Limits of a batch in Spark's data source API, which PySpark 4.1 does not have.

Without limits Spark asks a source for its newest offset only, and a run until the source is caught up asks once.
"""

from __future__ import annotations

try:
    from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow

    HAS_LIMITS = True
except ImportError:
    HAS_LIMITS = False

    class ReadLimit:  # type: ignore[no-redef]  # in place of a class that PySpark 4.1 lacks
        """Stands in for Spark's class."""

    class ReadAllAvailable(ReadLimit):  # type: ignore[no-redef]
        """Stands in for Spark's class."""

    class ReadMaxRows(ReadLimit):  # type: ignore[no-redef]
        """Stands in for Spark's class."""

        def __init__(self, max_rows: int) -> None:
            self.max_rows = max_rows

    class SupportsTriggerAvailableNow:  # type: ignore[no-redef]
        """Stands in for Spark's class."""


__all__ = ["HAS_LIMITS", "ReadAllAvailable", "ReadLimit", "ReadMaxRows", "SupportsTriggerAvailableNow"]
