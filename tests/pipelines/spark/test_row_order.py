"""A processor of keyed state gets the rows of a key in the order of their records, also where rows were mixed."""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from odradek.pipelines.spark.engines.settings import SHUFFLE_PARTITIONS
from tests.pipelines.spark.stage import renamed

if TYPE_CHECKING:
    from tests.pipelines.spark.stage import Stage

pytestmark = pytest.mark.spark

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
            yield Row(id=key[0], x=row.x, i=i)
        self.count.update((i,))
"""
DEFINITION = """
sources: {readings: {topic: "@in", schema: "id BIGINT, x BIGINT, other BIGINT"}}
steps:
  halves:
    sql: select id, x from readings where x % 2 = 1 union all select id, x from readings where x % 2 = 0
  others: {from: readings, deduplicate: {key: [other]}}
  joined: {sql: "select id, x from readings where other in (select id from range(1000))"}
  pairs:
    sql: |
      select id, explode(array(double(x), x + 0.5D)) as x from readings where x % 2 = 1
      union all select id, explode(array(double(x), x + 0.5D)) as x from readings where x % 2 = 0
  numbered: {from: INPUT, state: {key: [id], processor: "processors:Numbered"}, schema: "id BIGINT, x DOUBLE, i BIGINT"}
sinks: {numbered: {from: numbered, topic: "@out"}}
"""


def rows_by_key(stage: Stage, name: str) -> dict[int, list[float]]:
    """The rows of each key in the order in which the processor got them."""
    found: dict[int, dict[int, float]] = defaultdict(dict)
    for record in stage.read(name):
        row = json.loads(record.value or b"")
        found[row["id"]][row["i"]] = row["x"]
    return {key: [each for _, each in sorted(rows.items())] for key, rows in found.items()}


@pytest.mark.parametrize("read", ["halves", "others", "joined", "pairs"])
def test_a_processor_gets_rows_in_the_order_of_their_records(stage: Stage, read: str) -> None:
    divided = stage.spark.newSession()
    divided.conf.set(SHUFFLE_PARTITIONS, "3")
    divided.conf.set("spark.sql.autoBroadcastJoinThreshold", "-1")  # joins divide the rows by their keys
    stage = replace(stage, spark=divided)
    (stage.folder / "processors.py").write_text(PROCESSOR)
    stage.create("in", 1)
    records = [{"id": number % 5, "x": number, "other": number * 7 % 60} for number in range(60)]
    stage.produce("in", records)
    given = DEFINITION.replace("INPUT", read)
    pipeline = stage.pipeline(given)
    stage.run(pipeline)
    added = [0, 0.5] if read == "pairs" else [0]
    expected = {key: [row["x"] + each for row in records if row["id"] == key for each in added] for key in range(5)}
    assert rows_by_key(stage, "out") == expected
    stage.run_once(renamed(stage.pipeline(given.replace("@out", "@whole")), name="whole"))
    assert rows_by_key(stage, "whole") == expected
