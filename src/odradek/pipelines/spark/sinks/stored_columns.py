"""Rows as a database stores them: nested values as JSON, and other values without a type in SQL as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - its usual name
from pyspark.sql import types as T  # noqa: N812 - its usual name

from odradek.pipelines.spark.hidden_columns import quoted
from odradek.pipelines.spark.sinks.topics import JSON_OPTIONS
from odradek.pipelines.spark.writing.databases import WarehouseRefused

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

NESTED = (T.StructType, T.ArrayType, T.MapType, T.VariantType)
INTERVALS = (T.DayTimeIntervalType, T.YearMonthIntervalType, T.CalendarIntervalType)


def as_stored(frame: DataFrame, table: str, order_by: str | None) -> DataFrame:
    """Converts structs, arrays and maps to JSON, intervals and times of day to text; `order_by` must keep its order."""
    for each in frame.schema.fields:
        is_order = order_by is not None and each.name.lower() == order_by.lower()
        if is_order and isinstance(each.dataType, NESTED + INTERVALS):
            raise WarehouseRefused(
                f"table {table}: rows are ordered by {each.name} of type {each.dataType.simpleString()}, which has no "
                "order in a database; use a column with a time, a number or text"
            )
    return frame.select(*map(stored_value, frame.schema.fields))


def stored_value(field: T.StructField) -> Column:
    column = F.col(quoted(field.name))
    if isinstance(field.dataType, NESTED):
        return F.to_json(column, JSON_OPTIONS).alias(field.name)
    is_text = (
        isinstance(field.dataType, INTERVALS) or field.dataType.typeName() == "time"
    )  # by name: a class of some releases
    return column.cast("string").alias(field.name) if is_text else column
