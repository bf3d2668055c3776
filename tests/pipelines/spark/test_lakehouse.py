"""The DDL of lakehouse tables; the tables themselves are tested on PySpark 4.1, in `tests/pipelines/lakehouse`."""

from __future__ import annotations

from pyspark.sql import types as T  # noqa: N812 - its usual name

from odradek.pipelines.spark.writing.lakehouse import type_ddl


def test_names_of_fields_are_quoted() -> None:
    fields = T.StructType().add("x y", T.IntegerType()).add("a`b", T.MapType(T.StringType(), T.DecimalType(10, 2)))
    assert type_ddl(T.ArrayType(fields)) == "array<struct<`x y`: int, `a``b`: map<string, decimal(10,2)>>>"
