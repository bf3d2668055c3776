"""Records without a value: dropped, rows, or dead letters; and topic sinks that write them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.pipelines.spark.stage import Stage

pytestmark = pytest.mark.spark

DEFINITION = """
    dead_letters: "@dead"
    sources:
      rows: {topic: "@in", schema: "id BIGINT NOT NULL", tombstones: rows}
      kept: {topic: "@in", schema: "id BIGINT"}
      refused: {topic: "@in", format: bytes, tombstones: dead_letters}
      text: {topic: "@in", format: text}
    steps:
      changes: {sql: "select id, _key, _value is null as is_deleted from rows"}
    sinks:
      changes: {from: changes, topic: "@changes", key: _key, value: [id, is_deleted], deletes: is_deleted}
      kept: {from: kept, topic: "@kept"}
      refused: {from: refused, topic: "@refused", value: [_value], format: bytes}
      text: {from: text, topic: "@text", value: ["coalesce(value, 'deleted')"], format: text}
"""


def test_a_tombstone_is_what_its_source_says(stage: Stage) -> None:
    stage.create("in", 1)
    stage.produce("in", [{"id": 1}, None], key="a")
    stage.run(stage.pipeline(DEFINITION))
    changes = stage.read("changes")
    assert [(each.key, each.value) for each in changes] == [("a", b'{"id":1,"is_deleted":false}'), ("a", None)]
    assert len({each.headers["odradek-id"] for each in changes}) == 2
    assert [each.json for each in stage.read("kept")] == [{"id": 1}]
    assert [each.value for each in stage.read("refused")] == [b'{"id": 1}']
    assert [each.value for each in stage.read("text")] == [b'{"id": 1}', b"deleted"]
    assert [(each.value, each.headers["odradek-reason"]) for each in stage.read("dead")] == [(None, "no value")]
