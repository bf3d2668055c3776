"""Sinks of one flow do not affect each other, and SQL means what it says, whatever the flow starts from."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.pipelines.spark.stage import Stage

pytestmark = pytest.mark.spark

DEFINITION = """
sources:
  readings:
    topic: "@in"
    schema: "id BIGINT, at TIMESTAMP, list ARRAY<BIGINT>"
    watermark: {column: at, delay: 10 seconds}
steps:
  unique: {from: readings, deduplicate: {key: [id], within: 10 seconds}}
  each: {sql: "select id, explode(list) as item from unique"}
  dated: {sql: "select id, date_format(at, \\"'day' d\\") as day from unique"}
  whole: {sql: "select to_json(struct(*)) as j, id from readings"}
sinks:
  each: {from: each, topic: "@each"}
  all: {from: unique, topic: "@all", value: [id]}
  dated: {from: dated, topic: "@dated"}
  whole: {from: whole, topic: "@whole"}
"""


@pytest.mark.timeout(300)
def test_exploding_for_one_sink_leaves_the_rows_of_others_alone(stage: Stage) -> None:
    stage.create("in", 1)
    at = "2026-01-03T12:00:00Z"
    stage.produce("in", [{"id": 1, "at": at, "list": [1, 2]}, {"id": 2, "at": at, "list": []}])
    stage.run(stage.pipeline(DEFINITION))
    assert sorted(record.json["item"] for record in stage.read("each")) == [1, 2]
    assert sorted(record.json["id"] for record in stage.read("all")) == [1, 2]
    assert {record.json["day"] for record in stage.read("dated")} == {"day 3"}
    for record in stage.read("whole"):
        assert "__" not in record.json["j"]
        assert '"_topic"' in record.json["j"]
