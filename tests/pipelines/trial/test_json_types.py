"""Values of JSON by the types of columns: what fits is what Spark reads from a record."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from odradek.pipelines.definition.ddl import parse_ddl
from odradek.pipelines.trial.given import mismatch

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FITTING = [
    ("TINYINT", -128), ("SMALLINT", 32767), ("INT", 7), ("BIGINT", 2**63 - 1), ("BIGINT", None),
    ("DOUBLE", 1), ("FLOAT", 1.5), ("DOUBLE", "NaN"), ("DECIMAL(5, 2)", 1.25), ("DECIMAL(5, 2)", "1.25"),
    ("BOOLEAN", True), ("STRING", "x"), ("STRING", 5), ("STRING", {"a": [1]}), ("BINARY", "YWJj"),
    ("DATE", "2026-01-31"), ("TIMESTAMP", "2026-01-31 12:00:00"), ("TIMESTAMP", "2026-01-31T12:00:00+01:00"),
    ("TIMESTAMP", 1700000000), ("TIMESTAMP_NTZ", "2026-01-31 12:00:00"),
    ("ARRAY<INT>", [1, None]), ("MAP<STRING, INT>", {"a": 1}), ("STRUCT<x: INT>", {"x": 1, "y": "more"}),
]  # fmt: skip
MISMATCHING = [
    ("TINYINT", 300), ("INT", "5"), ("BIGINT", 1.0), ("BIGINT", True), ("BIGINT", 2**63),
    ("DOUBLE", "1.5"), ("DECIMAL(5, 2)", True), ("BOOLEAN", "true"), ("BOOLEAN", 1), ("BINARY", 5),
    ("DATE", "soon"), ("DATE", 5), ("TIMESTAMP", "soon"), ("TIMESTAMP", 1.5), ("TIMESTAMP_NTZ", 5),
    ("ARRAY<INT>", {"a": 1}), ("ARRAY<INT>", [1, "x"]), ("MAP<STRING, INT>", {"a": "x"}),
    ("STRUCT<x: INT>", {"x": "1"}), ("STRUCT<x: INT>", [1]),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "value"), FITTING)
def test_values_that_fit(kind: str, value: Any) -> None:
    assert mismatch({"c": value}, parse_ddl(f"c {kind}")) is None


@pytest.mark.parametrize(("kind", "value"), MISMATCHING)
def test_values_that_do_not_fit(kind: str, value: Any) -> None:
    assert mismatch({"c": value}, parse_ddl(f"c {kind}")) is not None


def test_the_first_field_is_named_with_its_path() -> None:
    columns = parse_ddl("a INT, s STRUCT<b: STRUCT<c: BIGINT>>")
    assert mismatch({"s": {"b": {"c": "é"}}}, columns) == 'field s.b.c: expected BIGINT, found "é"'
    assert mismatch({"other": "x"}, columns) is None


@pytest.mark.spark
def test_spark_reads_what_fits_and_nothing_else(spark: SparkSession) -> None:
    cases = [*FITTING, *MISMATCHING]
    options = "map('mode', 'PERMISSIVE', 'columnNameOfCorruptRecord', 'unread')"
    texts = [json.dumps({"c": value}) for _, value in cases]
    fits = [
        f"from_json('{text}', 'c {kind}, unread STRING', {options}).unread is null as c{number}"
        for number, (text, (kind, _)) in enumerate(zip(texts, cases, strict=True))
    ]
    (row,) = spark.range(1).selectExpr(*fits).collect()
    fitting, mismatching = row[: len(FITTING)], row[len(FITTING) :]
    assert [case for case, is_read in zip(FITTING, fitting, strict=True) if not is_read] == []
    assert [case for case, is_read in zip(MISMATCHING, mismatching, strict=True) if is_read] == []
