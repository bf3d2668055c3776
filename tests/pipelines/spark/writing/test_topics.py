"""From a topic through SQL to topics and dead letters."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from odradek.pipelines.definition.vocabulary import Otherwise
from odradek.pipelines.spark.engines.running import PipelineFailed
from odradek.pipelines.spark.writing.topics import TopicMissing

if TYPE_CHECKING:
    from tests.pipelines.spark.stage import Stage

pytestmark = pytest.mark.spark

DEFINITION = """
dead_letters: "@dead"
sources:
  readings:
    topic: "@in"
    schema: "id BIGINT NOT NULL, pressure DOUBLE, meter STRUCT<unit: STRING>"
    tombstones: dead_letters
steps:
  good:
    sql: |
      select id, pressure, meter.unit as unit
      from readings
    expect:
      plausible: {check: pressure between 0 and 400, otherwise: quarantine}
      has a unit: {check: unit is not null, otherwise: warn}
      not seven: {check: id <> 7, otherwise: drop}
  high:
    sql: select *, 'high' as rule from good where pressure > 100
sinks:
  all: {from: good, topic: "@out", key: id, value: [id, pressure], headers: {unit: unit}}
  warnings: {from: high, topic: "@warnings", key: "concat('pump ', id)"}
"""

GOOD = [
    {"id": 1, "pressure": 50, "meter": {"unit": "bar"}},
    {"id": 2, "pressure": 150.5},
    {"id": 7, "pressure": 10, "meter": {"unit": "bar"}},
]
BAD = [
    b"{not json",
    b'{"id": "four", "pressure": 1}',
    b'{"pressure": 1}',
    None,
    b'{"id": 5, "pressure": 1000, "meter": {"unit": "bar"}}',
    b"",
    b"[1, 2]",
    b"\xff\xfe",
]
REASONS = [
    "not JSON",
    "does not fit the schema",
    "missing field",
    "no value",
    "expectation 'plausible' not met",
    "not JSON",
    "does not fit the schema",
    "not JSON",
]


def fill(stage: Stage) -> None:
    stage.create("in")
    stage.produce("in", GOOD, key="a")
    stage.produce("in", BAD, partition=1, key="b")


def check_outputs(stage: Stage) -> None:
    out = {record.key: record for record in stage.read("out")}
    assert {key: record.json for key, record in out.items()} == {
        "1": {"id": 1, "pressure": 50.0},
        "2": {"id": 2, "pressure": 150.5},
    }
    assert out["1"].headers["unit"] == "bar"
    assert out["1"].headers["odradek-id"].startswith(f"p/all:{stage.topic('in')}:0:0:")
    (warning,) = stage.read("warnings")
    assert warning.key == "pump 2"
    assert warning.json == {"id": 2, "pressure": 150.5, "unit": None, "rule": "high"}
    dead = {record.headers["odradek-source"]: record for record in stage.read("dead")}
    assert len(dead) == len(BAD)
    for offset, (value, reason) in enumerate(zip(BAD, REASONS, strict=True)):
        letter = dead[f"1:{offset}"]
        assert letter.value == value
        assert letter.headers["odradek-reason"].partition(":")[0] == reason
        assert letter.headers["odradek-source-topic"] == stage.topic("in")
        assert letter.headers["sent"] == "by test"
        assert letter.key == "b"


def test_records_become_records_and_the_rest_dead_letters(stage: Stage) -> None:
    fill(stage)
    pipeline = stage.pipeline(DEFINITION)
    (report,) = stage.run(pipeline)
    check_outputs(stage)
    assert (report.rows, report.rejected) == (11, 7)
    assert {each.expectation: each.rows for each in report.violations} == {
        "plausible": 1,
        "has a unit": 1,
        "not seven": 1,
    }
    assert {each.otherwise for each in report.violations} == {Otherwise.QUARANTINE, Otherwise.WARN, Otherwise.DROP}


@pytest.mark.soak
def test_text_and_bytes_pass_through(stage: Stage) -> None:
    stage.create("in")
    stage.produce("in", [b"\x00\xff", b"hello"], key="k")
    stage.run(
        stage.pipeline("""
        sources:
          raw: {topic: "@in", format: bytes}
          text: {topic: "@in", format: text}
        sinks:
          same: {from: raw, topic: "@same", key: _key, value: [_value], format: bytes}
          loud: {from: text, topic: "@loud", value: [upper(value)], format: text}
        """)
    )
    assert [(record.key, record.value) for record in stage.read("same")] == [("k", b"\x00\xff"), ("k", b"hello")]
    assert [record.value for record in stage.read("loud")][1] == b"HELLO"


@pytest.mark.more
def test_an_expectation_may_stop_the_pipeline(stage: Stage) -> None:
    stage.create("in")
    stage.produce("in", [{"id": -1}])
    pipeline = stage.pipeline("""
        sources: {readings: {topic: "@in", schema: "id BIGINT"}}
        steps:
          good: {sql: select * from readings, expect: {positive: {check: id > 0, otherwise: fail}}}
        sinks: {all: {from: good, topic: "@out"}}
        """)
    with pytest.raises(PipelineFailed, match=r"step 'good': a row does not meet 'positive'.*-in-0 at offset 0"):
        stage.run(pipeline)
    assert stage.read("out") == []


def test_a_topic_that_is_missing_is_named(stage: Stage) -> None:
    pipeline = stage.pipeline("""
        sources: {readings: {topic: "@nowhere", schema: "id BIGINT"}}
        sinks: {all: {from: readings, topic: "@out"}}
        """)
    with pytest.raises(TopicMissing, match=f"topic {stage.topic('nowhere')} of source 'readings' does not exist"):
        stage.run(pipeline)
