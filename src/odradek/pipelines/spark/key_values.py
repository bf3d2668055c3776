"""Values of keys that are equal in SQL and differ in the bytes by which Spark's state finds them.

0.0 and -0.0 are one group of GROUP BY. Keyed state has them in one call of the processor if they are in one batch, and
finds the state of a key by its bytes: in different batches they would be two keys.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - its usual name
from pyspark.sql import types as T  # noqa: N812 - its usual name

from odradek.pipelines.spark.computing.frames import actual_name
from odradek.pipelines.spark.computing.frames import column as column_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark.sql import Column, DataFrame


def with_one_zero(frame: DataFrame, key: Iterable[str]) -> DataFrame:
    """The frame with 0.0 in place of -0.0 in these columns."""
    for name in (actual_name(frame, each) for each in key):
        kind = frame.schema[name].dataType
        if has_floats(kind):
            frame = frame.withColumn(name, one_zero(column_of(name), kind))
    return frame


def has_floats(kind: T.DataType) -> bool:
    if isinstance(kind, T.StructType):
        return any(has_floats(each.dataType) for each in kind.fields)
    if isinstance(kind, T.ArrayType):
        return has_floats(kind.elementType)
    return isinstance(kind, T.FloatType | T.DoubleType)


def one_zero(column: Column, kind: T.DataType) -> Column:
    if not has_floats(kind):
        return column
    if isinstance(kind, T.StructType):
        fields = [one_zero(column.getField(each.name), each.dataType).alias(each.name) for each in kind.fields]
        return F.when(column.isNotNull(), F.struct(*fields))
    if isinstance(kind, T.ArrayType):
        return F.transform(column, lambda each: one_zero(each, kind.elementType))
    return F.when(column == 0, F.lit(0).cast(kind)).otherwise(column)
