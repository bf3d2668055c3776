"""Internal columns of rows: the origin of a row, and why it was rejected.

`__origin` is the record that a row was derived from. It gives outputs an id that is stable across replays, and dead
letters their original bytes. Sinks and views drop hidden columns.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - its usual name

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark.sql import Column, DataFrame

ORIGIN = "__origin"
REJECTED = "__rejected"  # why a record failed to parse; null if it parsed
VIOLATED = "__violated"  # a bit for each expectation that a row does not meet
HIDDEN = (ORIGIN, REJECTED, VIOLATED)
ORIGIN_FIELDS = ("topic", "partition", "offset", "key", "value", "headers")


def origin_struct() -> Column:
    """The origin struct, from the columns of Spark's Kafka source."""
    return F.struct(*(F.col(name) for name in ORIGIN_FIELDS)).alias(ORIGIN)


def has_origin(frame: DataFrame) -> bool:
    return ORIGIN in frame.columns


def without_hidden(frame: DataFrame) -> DataFrame:
    return frame.drop(*(name for name in HIDDEN if name in frame.columns))


def visible_columns(frame: DataFrame) -> list[str]:
    """The columns of a sink without `value`: all except hidden ones and the record's `_key`, `_value` …."""
    return visible_names(frame.columns)


def visible_names(names: Iterable[str]) -> list[str]:
    shown = [name for name in names if name not in HIDDEN]
    is_whole = RECORD_NAMES.issubset(shown)  # such a column is written only if it is named
    return [name for name in shown if not (is_whole and name in RECORD_NAMES)]


RECORD_NAMES = frozenset({"_key", "_value", "_headers", "_timestamp", "_topic", "_partition", "_offset"})


def quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
