"""Counts over the rows of records."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from odradek.pipelines.spark.one_pass.row_columns import Rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ANSI = "spark.sql.ansi.enabled"


@pytest.mark.spark
@pytest.mark.parametrize("is_ansi", ["true", "false"])
def test_a_record_without_rows_is_counted_as_none(spark: SparkSession, is_ansi: str) -> None:
    """Without ANSI mode the size of null is -1."""
    session = spark.newSession()
    session.conf.set(ANSI, is_ansi)
    rows = Rows.several("a", ["x"])
    frame = session.sql(
        "select * from values (array(named_struct('x', 1), named_struct('x', 5))), (null), (null) as t(a)"
    )
    assert frame.selectExpr(rows.count("__row.x > 2"), rows.total()).collect() == [(1, 2)]
