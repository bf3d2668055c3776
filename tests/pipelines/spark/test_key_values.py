"""0.0 and -0.0 are one key of a stream, as they are one group of a batch."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING

import pytest
from pyspark.sql import types as T  # noqa: N812 - its usual name

from odradek.pipelines.spark.computing.keyed_rows import has_floats, with_one_zero
from tests.pipelines.spark.file_batches import give_files

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
    state: {key: [ID], processor: "numbering:Numbered", order: any}
    schema: "id DOUBLE, i BIGINT"
  once: {from: readings, deduplicate: {key: [ID, x]}}
sinks:
  numbered: {from: numbered, table: numbered}
  once: {from: once, table: once}
"""
PROCESSOR = """
from pyspark.sql import Row
from pyspark.sql.streaming import StatefulProcessor


class Numbered(StatefulProcessor):
    def init(self, handle):
        self.count = handle.getValueState("count", "i BIGINT")

    def handleInputRows(self, key, rows, timerValues):
        i = self.count.get()[0] if self.count.exists() else 0
        for row in rows:
            i += 1
            yield Row(id=key[0], i=i)
        self.count.update((i,))
"""


def numbers(folder: Path, query: str) -> list[float | None]:
    with sqlite3.connect(folder / "w.db") as connection:
        return [each for (each,) in connection.execute(query)]


def test_a_stream_has_one_key_for_both_zeros(stage: Stage) -> None:
    (stage.folder / "numbering.py").write_text(PROCESSOR)
    batches: list[list[float | None]] = [[-0.0, 0.0], [0.0, -0.0], [None, 2.5], [2.5, None]]
    give_files(stage.folder / "in", [[{"id": each, "x": 1} for each in batch] for batch in batches])
    for run in stage.run, stage.run_once:
        run(stage.pipeline(DEFINITION))
        assert numbers(stage.folder, "select i from numbered order by i") == [1, 1, 1, 2, 2, 2, 3, 4]
        assert numbers(stage.folder, "select id from once order by id") == [None, 0.0, 2.5]
        numbers(stage.folder, "delete from numbered")
        numbers(stage.folder, "delete from once")


@pytest.mark.more
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
