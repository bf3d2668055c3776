"""Change data as Spark rows: the changes of a batch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - its usual name

from odradek.pipelines.definition.model import LatestRows
from odradek.pipelines.spark.hidden_columns import ORIGIN, has_origin, quoted, visible_columns
from odradek.pipelines.spark.views import latest_rows, order_value

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from odradek.pipelines.definition.model import Changes

IS_DELETED = "odradek_is_deleted"
HISTORY_COLUMNS = ("valid_from", "valid_to", "is_current")


def changes_in(frame: DataFrame, changes: Changes) -> DataFrame:
    """The changes of a batch that may count: one for each key, or with a history for each key and sequence.

    The columns are those of the rows, the key and the sequence if these are the record's own, and IS_DELETED."""
    names = visible_columns(frame, (*changes.key, changes.sequence))
    spelled = {name.lower(): name for name in names}
    named = [spelled[name.lower()] for name in (*changes.key, changes.sequence)]
    is_deleted = F.lit(False) if changes.deletes is None else F.coalesce(F.expr(changes.deletes), F.lit(False))
    columns = [order_value(frame, name).alias(name) if name == named[-1] else F.col(quoted(name)) for name in names]
    marked = frame.select(*columns, is_deleted.alias(IS_DELETED), *([ORIGIN] if has_origin(frame) else []))
    key = tuple(named) if changes.keeps_history else tuple(named[:-1])
    return latest_rows(marked, LatestRows(key, (named[-1],)))
