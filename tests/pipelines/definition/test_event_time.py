"""Joins of streams, sessions and late rows: YAML and Python give the same model."""

from __future__ import annotations

from datetime import timedelta

from odradek.pipelines import Pipeline
from odradek.pipelines.definition.loading import define_python
from odradek.pipelines.definition.model import Watermark
from odradek.pipelines.definition.operations import Aggregation, StreamJoin, Window
from odradek.pipelines.definition.vocabulary import Duration, StreamJoinKind
from tests.pipelines.definition.definitions import sound

YAML = """
pipeline: p
dead_letters: dead
sources:
  shown:
    topic: shown
    schema: "id BIGINT, shown_at TIMESTAMP"
    watermark: {column: shown_at, delay: 1 minute}
  clicks: {topic: clicks, schema: "id BIGINT, at TIMESTAMP", watermark: {column: at, delay: 1 minute}}
steps:
  pairs: {from: shown, join: {stream: clicks, on: [id], within: 1 hour, how: full}}
  visits: {from: clicks, by: [id], window: {column: at, gap: 30 minutes}, aggregate: {n: count(*)}}
sinks:
  pairs: {from: pairs, topic: pairs}
  visits: {from: visits, topic: visits}
"""


def test_python_and_yaml_give_the_same_model() -> None:
    p = Pipeline("p", dead_letters="dead")
    shown = {"column": "shown_at", "delay": "1 minute"}
    p.source("shown", topic="shown", schema="id BIGINT, shown_at TIMESTAMP", watermark=shown)
    mark = {"column": "at", "delay": "1 minute"}
    p.source("clicks", topic="clicks", schema="id BIGINT, at TIMESTAMP", watermark=mark)
    join = {"stream": "clicks", "on": ["id"], "within": timedelta(hours=1), "how": "full"}
    p.step("pairs", from_="shown", join=join)
    window = {"column": "at", "gap": "30 minutes"}
    p.step("visits", from_="clicks", by=["id"], window=window, aggregate={"n": "count(*)"})
    p.sink("pairs", from_="pairs", topic="pairs")
    p.sink("visits", from_="visits", topic="visits")
    defined = define_python(p)
    assert defined.is_sound, defined.problems
    pipeline = sound(YAML)
    assert defined.pipeline == pipeline
    pairs, visits = (each.operation for each in pipeline.steps)
    assert pairs == StreamJoin("shown", "clicks", ("id",), Duration(3_600_000), StreamJoinKind.FULL)
    assert isinstance(visits, Aggregation)
    assert visits.window == Window("at", gap=Duration(1_800_000))
    assert pipeline.sources[0].watermark == Watermark("shown_at", Duration(60_000))
