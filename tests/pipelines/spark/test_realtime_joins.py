"""The verdicts of `realtime_queries` are those of Spark's real-time mode."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING

import pytest

from odradek.pipelines.definition.vocabulary import Engine
from odradek.pipelines.spark.engines.realtime import RealtimeEngine
from odradek.pipelines.spark.failures import PipelineError
from odradek.pipelines.spark.topics import prepare_topics
from tests.pipelines.realtime_queries import REFUSED, RUN, SCHEMAS
from tests.pipelines.spark.stage import WAIT_S, Stage, renamed

if TYPE_CHECKING:
    from odradek.pipelines.definition.model import Pipeline

pytestmark = pytest.mark.spark

ASKED = [  # by `make test`; `make soak` asks for all
    "select a.id from a, t, u where a.id = u.uid and t.id = u.uid",
    "select a.id from a join (select t.id from t cross join u) x on a.id = x.id",
    "select id from a where id not in (select id from t)",
    "select name from a join t on t.id = t.id",
    "select name from a left join t on a.id > t.id where a.id = 3",
    "select id from a where exists (select 1 from t where t.id < a.id)",
    "select a.id, (select count(*) from t where t.id + 1 = a.id) as m from a",
]
# Of what real-time mode does not run, and of state of a join of the stream with itself, which it does not create.
REFUSAL = "operator allowlist for Real-Time Mode|stream-stream|Failed to read the operator metadata"


def pipeline_of(stage: Stage, sql: str) -> Pipeline:
    for name, columns in {"t": ("id", "name"), "u": ("uid", "label")}.items():
        rows = [dict(zip(columns, (number, f"n{number}"), strict=True)) for number in (1, 2, 3)]
        (stage.folder / f"{name}.json").write_text("".join(json.dumps(row) + "\n" for row in rows))
    stage.create("in", 1)
    stage.produce("in", [{"id": number, "xs": [number, 1], "word": f"n{number}"} for number in (0, 1, 2, 3, 9)])
    pipeline = stage.pipeline(f"""
        sources:
          a: {{topic: "@in", schema: "{SCHEMAS["a"]}"}}
          t: {{files: {{path: t.json, format: json}}, schema: "{SCHEMAS["t"]}"}}
          u: {{files: {{path: u.json, format: json}}, schema: "{SCHEMAS["u"]}"}}
        steps: {{s: {{sql: {json.dumps(sql)}}}}}
        sinks: {{o: {{from: s, topic: "@out"}}}}
        """)
    return renamed(pipeline, engine=Engine.REALTIME)


def await_row(stage: Stage, pipeline: Pipeline) -> None:
    """Waits until a row is written; raises the failure of the query."""
    running = RealtimeEngine(stage.spark, pipeline, prepare_topics(pipeline)).start()
    try:
        give_up_at = time.monotonic() + WAIT_S
        while not stage.read("out"):
            running.raise_failure()
            assert time.monotonic() < give_up_at
            time.sleep(0.1)  # a poll's pause
    finally:
        running.stop()


def asked(queries: list[str]) -> list[object]:
    return [each if each in ASKED else pytest.param(each, marks=pytest.mark.soak) for each in queries]


@pytest.mark.parametrize("sql", asked(RUN))
def test_real_time_mode_runs_joins_by_equal_columns(stage: Stage, sql: str) -> None:
    await_row(stage, pipeline_of(stage, sql))


@pytest.mark.parametrize("sql", asked(REFUSED))
def test_real_time_mode_runs_no_other_joins(stage: Stage, sql: str) -> None:
    with pytest.raises(PipelineError, match=REFUSAL):
        await_row(stage, pipeline_of(stage, sql))


@pytest.mark.parametrize(
    "sql",
    [
        "select t.id from t join u on t.id = u.uid",
        "select t.id from t cross join u",
        "select id from t union all select uid from u",
    ],
)
def test_a_step_of_tables_of_unknown_size_is_broadcast(stage: Stage, sql: str) -> None:
    """Spark does not know the size of a topic before it has read it."""
    stage.create("in", 1)
    stage.produce("in", [{"id": 1}])
    stage.produce("t", [{"id": 1}, {"id": 2}])
    stage.produce("u", [{"uid": 1}])
    pipeline = stage.pipeline(f"""
        sources:
          a: {{topic: "@in", schema: id BIGINT}}
          t: {{topic: "@t", schema: id BIGINT, stream: false}}
          u: {{topic: "@u", schema: uid BIGINT, stream: false}}
        steps:
          both: {{sql: {sql}}}
          s: {{sql: select a.id from a join both on a.id = both.id}}
        sinks: {{o: {{from: s, topic: "@out"}}}}
        """)
    await_row(stage, renamed(pipeline, engine=Engine.REALTIME))


def test_a_static_step_that_no_output_reads_is_not_loaded(stage: Stage) -> None:
    stage.create("in", 1)
    stage.produce("in", [{"id": 1}])
    pipeline = stage.pipeline("""
        sources:
          a: {topic: "@in", schema: id BIGINT}
          t: {files: {path: missing.json, format: json}, schema: id BIGINT}
        steps:
          unused: {sql: select id from t}
          s: {sql: "select explode(array(id)) as id from a"}
        sinks: {o: {from: s, topic: "@out"}}
        """)
    await_row(stage, renamed(pipeline, engine=Engine.REALTIME))
