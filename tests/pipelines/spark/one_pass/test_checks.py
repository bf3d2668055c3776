"""The check of an expectation is evaluated once for each row, whatever uses it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from odradek.pipelines.definition.graph import build_graph
from odradek.pipelines.planning.flows import split_flows
from odradek.pipelines.spark.one_pass.passing import whole_pass
from odradek.pipelines.spark.reading.record_files import RECORD_DDL
from tests.pipelines.definition.definitions import sound

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

DEFINITION = """
pipeline: checks
bootstrap_servers: nowhere:1
dead_letters: letters
sources: {readings: {topic: in, schema: "id BIGINT, n BIGINT"}}
steps:
  checked:
    sql: select id, n from readings
    expect:
      known: {check: id <> 41, otherwise: quarantine}
      small: {check: n <> 42, otherwise: drop}
      even: {check: n <> 43, otherwise: warn}
sinks: {out: {from: checked, topic: out, key: id}}
"""


def test_the_check_of_an_expectation_is_evaluated_once(spark: SparkSession) -> None:
    pipeline = sound(DEFINITION)
    (flow,) = split_flows(pipeline, build_graph(pipeline))
    values = [f'{{"id": {key}, "n": {n}}}'.encode() for key, n in ((1, 1), (41, 2), (2, 42), (3, 43), (41, 42))]
    rows = [(None, value, "in", 0, offset, None, 0, None) for offset, value in enumerate(values)]
    made = whole_pass(pipeline, flow, spark.createDataFrame(rows, RECORD_DDL))
    plan = made.observed()._jdf.queryExecution().analyzed().toString()
    assert [plan.count(f"cast({number} as bigint)") for number in (41, 42, 43)] == [1, 1, 1]
    ((_producer, records),) = made.records_in(made.observed())
    found = [(row.topic, row.value.decode()) for row in records.collect()]
    kept, refused = ([value for topic, value in found if topic == name] for name in ("out", "letters"))
    assert kept == ['{"id":1,"n":1}', '{"id":3,"n":43}']
    assert refused == ['{"id": 41, "n": 2}', '{"id": 41, "n": 42}']
