"""Flows that share a query (`share_reads`): the same results as by themselves, from one reading of the source."""

from __future__ import annotations

import dataclasses
import json
import sqlite3
from typing import TYPE_CHECKING, Any

import pytest

from odradek.pipelines.spark.failures import PipelineError
from tests.pipelines.spark.file_batches import seconds_after_noon

if TYPE_CHECKING:
    from tests.pipelines.spark.stage import Stage

pytestmark = pytest.mark.spark

RECORDS = 40
DEFINITION = """
warehouse: sqlite:///w.db
dead_letters: "@dead"
share_reads: true
sources:
  readings:
    topic: "@readings"
    start: earliest
    max_records_per_batch: 16
    schema: "id BIGINT, at TIMESTAMP, x BIGINT"
    watermark: {column: at, delay: 10 seconds}
steps:
  plausible: {sql: "select id, at, x from readings", expect: {small: {check: x < 1000, otherwise: quarantine}}}
  minutes: {from: plausible, window: {column: at, size: 1 minute}, by: [id], aggregate: {n: count(*), most: max(x)}}
  even: {sql: "select id, at, x from plausible where x % 2 = 0"}
  halves: {from: even, window: {column: at, size: 30 seconds}, by: [id], aggregate: {total: sum(x)}}
  large: {sql: "select id, window_start, total from halves where total > 10"}
sinks:
  minutes: {from: minutes, table: minutes, key: [id, window_start], mode: upsert}
  halves: {from: halves, table: halves, key: [id, window_start], mode: upsert}
  large: {from: large, topic: "@large", mode: update}
  plain: {from: plausible, topic: "@plain"}
views:
  newest: {from: plausible, key: [id], order_by: at}
"""
SHARED = "readings-shared-changes"


def reading(number: int) -> dict[str, Any]:
    return {"id": number % 3, "at": seconds_after_noon(2 * number), "x": number}


def tables(stage: Stage, database: str) -> dict[str, list[tuple[Any, ...]]]:
    queries = {
        "minutes": "select id, window_start, n, most from minutes",
        "halves": "select id, window_start, total from halves",
        "newest": "select id, at, x from newest",
    }
    with sqlite3.connect(stage.folder / database) as connection:
        return {name: sorted(connection.execute(text).fetchall()) for name, text in queries.items()}


@pytest.mark.parametrize("other_engine", ["batch", pytest.param("standard", marks=pytest.mark.soak)])
def test_the_source_is_read_once_with_the_same_results(stage: Stage, other_engine: str) -> None:
    for name in ("readings", "large", "plain", "dead"):
        stage.create(name)
    stage.produce("readings", [reading(number) for number in range(0, RECORDS, 2)])
    stage.produce("readings", [reading(number) for number in range(1, RECORDS, 2)], partition=1)
    stage.produce("readings", [b"no JSON", {**reading(1), "x": 5000}])
    shared = stage.pipeline(DEFINITION)
    reports = stage.run(shared)
    assert sum(each.rows or 0 for each in reports if each.flow == SHARED) == RECORDS + 2
    assert {each.flow for each in reports} == {SHARED, "readings"}
    assert sum(each.rejected for each in reports) == 1
    assert sum(violation.rows for each in reports for violation in each.violations) == 1
    stage.produce("readings", [reading(number) for number in range(RECORDS, RECORDS + 10)])  # with the state of before
    stage.run(shared)
    found = tables(stage, "w.db")
    large = {(row["id"], row["window_start"]): row["total"] for row in (each.json for each in stage.read("large"))}

    in_one_batch = stage.pipeline(DEFINITION.replace("max_records_per_batch: 16", "max_records_per_batch: 1000"))
    apart = dataclasses.replace(in_one_batch, share_reads=False, checkpoints="apart", warehouse="sqlite:///apart.db")
    if other_engine == "batch":
        stage.run_once(apart)
    else:
        stage.run(apart)
    assert tables(stage, "apart.db") == found
    again = {(row["id"], row["window_start"]): row["total"] for row in (each.json for each in stage.read("large"))}
    assert again == large
    assert sum(row[2] for row in found["minutes"]) == RECORDS + 10


FINAL = """
share_reads: true
sources:
  readings:
    topic: "@readings"
    start: earliest
    schema: "id BIGINT, at TIMESTAMP, x BIGINT"
    watermark: {column: at, delay: 10 seconds}
steps:
  none: {sql: "select id, at, x from readings where x < 0"}
  never: {from: none, window: {column: at, size: 10 seconds}, by: [id], aggregate: {n: count(*)}}
  counted: {from: readings, window: {column: at, size: 10 seconds}, by: [id], aggregate: {n: count(*)}}
sinks:
  never: {from: never, topic: "@never"}
  counted: {from: counted, topic: "@counted"}
"""


def test_a_flow_without_rows_does_not_hold_up_the_watermark_of_others(stage: Stage) -> None:
    for name in ("readings", "never", "counted"):
        stage.create(name)
    stage.produce("readings", [*(reading(number) for number in range(RECORDS)), b"no JSON"])
    reports = stage.run(stage.pipeline(FINAL))
    assert {each.flow for each in reports} == {"readings-shared"}
    assert sum(each.rejected for each in reports) == 1  # counted by the query, because there is no dead-letter topic
    ended = [json.dumps(each.json, sort_keys=True) for each in stage.read("counted")]
    assert len(ended) == len(set(ended)) > 0
    assert not stage.read("never")


def test_a_flow_that_is_not_computed_in_one_pass_is_refused(stage: Stage) -> None:
    stage.create("readings")
    with pytest.raises(PipelineError, match="cannot share a query with others"):
        stage.run(
            stage.pipeline(
                DEFINITION.replace(
                    "select id, window_start, total from halves where total > 10",
                    "select id, window_start, total from halves union all select id, window_start, total from halves",
                )
            )
        )
