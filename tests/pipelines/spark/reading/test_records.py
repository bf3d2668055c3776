"""Records of topics from end to end: JSON Schema, the record's own columns, a megabyte, nulls and wrong types."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.pipelines.spark.stage import Stage

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from odradek.testing import RunningBroker

pytestmark = pytest.mark.spark
NOON_MS = 1_767_268_800_000
DEFINITION = """
dead_letters: "@dead"
sources:
  readings:
    topic: "@in"
    tombstones: dead_letters
    schema: >-
      id BIGINT NOT NULL, at TIMESTAMP, note STRING, tags ARRAY<STRING>, meter STRUCT<unit: STRING, scale: DOUBLE>
steps:
  plain:
    sql: |
      select id, at, length(note) as note, tags[0] as tag, meter.scale as scale, cast(_key as string) as key,
        _headers[0].key as header, unix_millis(_timestamp) as sent_ms, _topic as topic, _partition as part,
        _offset as place
      from readings
sinks:
  out: {from: plain, topic: "@out", key: key, headers: {part: part}}
  whole: {from: readings, topic: "@whole", value: [_value], format: bytes}
"""
LONG = "x" * 1_000_000
WRONG = [b'{"id": 1.5}', b'{"id": "1"}', b'{"id": 1, "meter": 5}', b'{"id": 1, "at": "yesterday"}', b"{}", b"5", None]


def test_records_from_end_to_end(spark: SparkSession, odradek_session_broker: RunningBroker, tmp_path: Path) -> None:
    stage = Stage(spark, odradek_session_broker.bootstrap_servers, tmp_path)
    stage.create("in")
    rich = {"id": 1, "at": "2026-01-01T12:00:00Z", "tags": ["a"], "meter": {"scale": 2}, "note": LONG, "more": [1]}
    stage.produce("in", [rich, {"id": 2, "note": None}], key="k", timestamp=NOON_MS)
    stage.produce("in", WRONG, partition=1)
    stage.run_once(stage.pipeline(DEFINITION))
    first, second = sorted(stage.read("out"), key=lambda record: record.json["id"])
    assert first.json == {
        "id": 1,
        "at": "2026-01-01T12:00:00.000Z",
        "note": len(LONG),
        "tag": "a",
        "scale": 2.0,
        "key": "k",
        "header": "sent",
        "sent_ms": NOON_MS,
        "topic": stage.topic("in"),
        "part": 0,
        "place": 0,
    }
    assert (first.key, first.headers["part"]) == ("k", "0")
    assert {name: second.json[name] for name in ("at", "note", "tag", "scale", "place")} == {
        "at": None,
        "note": None,
        "tag": None,
        "scale": None,
        "place": 1,
    }
    assert max(len(record.value or b"") for record in stage.read("whole")) > len(LONG)
    assert sorted(repr(record.value) for record in stage.read("dead")) == sorted(map(repr, WRONG))
