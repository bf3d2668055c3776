"""Flows that are computed row by row, from topics into topics, tables and files."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest

from odradek.pipelines.planning.plan import CANNOT_COMPUTE
from odradek.pipelines.planning.rules import plan_again
from tests.pipelines.spark.engines.folder_stage import FolderStage

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.pipelines.spark.stage import Stage, Written

pytestmark = pytest.mark.spark

SOURCES = """
pipeline: p
dead_letters: letters
sources: {readings: {topic: readings, schema: "id BIGINT, n BIGINT, k STRING"}}
steps:
  known:
    sql: select id, n, 12 / n as share, k from readings where id is not null
    expect: {small: {check: n < 50, otherwise: quarantine}, named: {check: k <> '', otherwise: warn}}
"""
BATCHES = [
    [{"id": 1, "n": 2, "k": "a"}, {"id": 2, "n": 60, "k": "b"}, {"n": 4}],
    [{"id": 3, "n": 0, "k": "c"}, {"id": 4, "n": 3, "k": ""}, {"id": "text"}],
]


def test_records_are_written_to_topics(spark: SparkSession, tmp_path: Path) -> None:
    stage = FolderStage(spark, tmp_path, SOURCES + "sinks: {known: {from: known, topic: out, value: [id, share]}}")
    for each in BATCHES:
        stage.feed(readings=each)
    reports = stage.run()
    assert stage.records("out") == [{"id": 1, "share": 6.0}, {"id": 4, "share": 4.0}]
    assert len(stage.records("letters")) == 3
    assert [(each.flow, each.number, each.rows, each.rejected, each.written) for each in reports] == [
        ("readings", 0, 3, 0, {"known": 1}),
        ("readings", 1, 3, 1, {"known": 1}),
    ]
    unmet: Counter[str] = Counter()
    for report in reports:
        unmet.update({each.expectation: each.rows for each in report.violations if each.step == "known"})
    assert unmet == {"small": 1, "named": 1, CANNOT_COMPUTE: 1}


def test_rows_are_written_to_tables(spark: SparkSession, tmp_path: Path) -> None:
    stage = FolderStage(
        spark,
        tmp_path,
        SOURCES
        + """
sinks:
  out: {from: known, topic: out, key: k, value: [id]}
  every: {from: known, table: every}
  latest: {from: known, table: latest, key: [k], order_by: id}
  files: {from: known, files: {path: files, format: json}}
""",
    )
    for each in [*BATCHES, [{"id": 9, "n": 1, "k": "a"}, {"id": 8, "n": 4}]]:
        stage.feed(readings=each)
    reports = stage.run()
    assert stage.records("out") == [{"id": 1}, {"id": 4}, {"id": 9}, {"id": 8}]
    assert [row[0] for row in stage.rows("every")] == [1, 4, 8, 9]
    assert stage.rows("latest") == [(4, 3, 4.0, ""), (9, 1, 12.0, "a")]
    written = sum((Counter(each.written) for each in reports), Counter())
    assert written == {"out": 4, "every": 4, "latest": 3, "files": 4}
    stage.close()


CAREFUL = """
dead_letters: "@dead"
sources: {readings: {topic: "@in", schema: "id BIGINT, pressure DOUBLE", columns: {_topic: "concat('my ', _topic)"}}}
steps:
  sound:
    sql: |
      select ID, Pressure as p, _topic as topic, upper(_topic) as value, 7 as partition from readings where pressure > 0
    expect: {"low": {check: p < 400, otherwise: quarantine}, "odd": {check: id % 2 = 1, otherwise: drop}}
  reported:
    sql: select *, if(p is null or p >= 400 or p <= 0, cast(concat('x', id) as double), p * 2) as twice from sound
sinks:
  reported: {from: reported, topic: "@reported", key: id, headers: {topic: topic, partition: partition}}
  sound: {from: sound, topic: "@sound", value: [id, value], headers: {odradek-id: id}}
  high_sound: {from: sound, topic: "@more", value: [id], headers: {trace: "'high'"}}
  sound_more: {from: sound, topic: "@more", value: [id], headers: {high: "'more'"}}
  more: {from: sound, topic: "@more", value: [id], headers: {high_sound: "'less'"}}
"""


@pytest.mark.more
def test_a_row_program_writes_what_the_tables_of_a_batch_have(stage: Stage) -> None:
    """Covers names that the record has too, names in another case, and an expression that fails without a row."""
    stage.create("in", 1)
    values = [
        {"id": 1, "pressure": 100},
        {"id": 2, "pressure": 100},
        {"id": 3, "pressure": 500},
        {"id": 5, "pressure": -1},
    ]
    stage.produce("in", [*values, b"no JSON", {"id": 7}, {"id": 9, "pressure": 2}])
    pipeline = stage.pipeline(CAREFUL)
    (flow,) = plan_again(pipeline).flows
    assert flow.is_row_program
    topics = {"dead": 2, "more": 6, "reported": 2, "sound": 2}
    for each in topics:
        stage.create(each, 1)
    stage.run_once(pipeline)
    of_batch = {each: records(stage, each) for each in topics}
    stage.run(pipeline)
    of_program = {each: records(stage, each)[len(of_batch[each]) :] for each in topics}
    assert {each: len(found) for each, found in of_batch.items()} == topics
    assert {each: sorted(found) for each, found in of_program.items()} == {
        each: sorted(found) for each, found in of_batch.items()
    }
    assert {each.headers["topic"] for each in stage.read("reported")} == {f"my {stage.topic('in')}"}


def records(stage: Stage, topic: str) -> list[str]:
    def shown(record: Written) -> str:
        return repr((record.key, record.value, sorted(record.headers.items())))

    return [shown(each) for each in stage.read(topic)]
