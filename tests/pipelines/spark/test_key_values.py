"""0.0 and -0.0 are one key of a stream, as they are one group of a batch."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING

import pytest
from pyspark.sql import types as T  # noqa: N812 - its usual name

from odradek.pipelines.spark.key_values import has_floats, with_one_zero
from tests.pipelines.spark.file_batches import give_files
from tests.pipelines.spark.test_row_order import PROCESSOR

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.pipelines.spark.stage import Stage

pytestmark = pytest.mark.spark

DEFINITION = """
warehouse: sqlite:///w.db
sources:
  readings:
    files: {path: in, format: json, options: {maxFilesPerTrigger: 1}}
    stream: true
    schema: "id DOUBLE, x BIGINT"
steps:
  numbered:
    from: readings
    state: {key: [ID], processor: "processors:Numbered"}
    schema: "id DOUBLE, x BIGINT, i BIGINT"
sinks: {numbered: {from: numbered, table: numbered}}
"""


def numbers(folder: Path) -> list[int]:
    with sqlite3.connect(folder / "w.db") as connection:
        found = [each for (each,) in connection.execute("select i from numbered order by i")]
        connection.execute("delete from numbered")
    return found


def test_a_stream_has_one_key_for_both_zeros(stage: Stage) -> None:
    (stage.folder / "processors.py").write_text(PROCESSOR)
    batches: list[list[float | None]] = [[-0.0, 0.0], [0.0, -0.0], [None, 2.5], [2.5, None]]
    give_files(stage.folder / "in", [[{"id": each, "x": 1} for each in batch] for batch in batches])
    for run in stage.run, stage.run_once:
        run(stage.pipeline(DEFINITION))
        assert numbers(stage.folder) == [1, 1, 1, 2, 2, 2, 3, 4]


def test_other_values_and_types_are_kept(spark: SparkSession) -> None:
    kinds = "d DOUBLE, f FLOAT, s STRUCT<a: ARRAY<DOUBLE>, n: INT>, n BIGINT"
    rows = [(-0.0, -0.0, ([-0.0, None, 1.5], 1), 0), (None, 2.5, None, None)]
    frame = with_one_zero(spark.createDataFrame(rows, kinds), ["D", "f", "s", "n"])
    assert frame.schema == spark.createDataFrame([], kinds).schema
    first, second = frame.collect()
    assert [str(first.d), str(first.f), str(first.s.a[0])] == ["0.0"] * 3
    assert (first.s.a[1:], first.s.n, first.n) == ([None, 1.5], 1, 0)
    assert tuple(second) == (None, 2.5, None, None)
    assert [has_floats(each) for each in (T.LongType(), T.DecimalType(), T.StringType())] == [False] * 3
