"""`otherwise: fail`: no flow that reads the step commits the batch of the failing row or a later one."""

from __future__ import annotations

from typing import TYPE_CHECKING
from unittest.mock import MagicMock

import pytest

from odradek.pipelines.operating.backoff import Retry
from odradek.pipelines.operating.checkpoints import Checkpoints
from odradek.pipelines.planning.rules import plan_again
from odradek.pipelines.spark.engines.running import FlowStopped, PipelineFailed, Running
from odradek.pipelines.spark.engines.standard import StandardEngine
from odradek.pipelines.spark.sessions.failures import PipelineError, retry_of
from odradek.pipelines.spark.writing.topics import prepare_topics
from tests.pipelines.spark.stage import caught_up

if TYPE_CHECKING:
    from tests.pipelines.spark.stage import Stage

HEAD = """
    warehouse: sqlite:///w.db
    sources:
      rows: {topic: "@in", schema: "id BIGINT, v BIGINT"}
      others: {topic: "@in", schema: "id BIGINT, v BIGINT"}
    steps:
      good:
        sql: select id, v from rows
        expect:
          not zero: {check: v <> 0, otherwise: drop}  # does not hide the failure of the same row
          positive: {check: v > 0, otherwise: fail}
"""
# Each reads the failing step in another way; a later condition must not hide the row.
READERS = {
    "files": """
        sinks: {archive: {from: good, files: {path: archive, format: json}}}
    """,
    "a view of an aggregate": """
        views: {totals: {from: good, by: [id], aggregate: {events: count(*)}}}
    """,
    "state": """
      totals: {from: good, by: [id], aggregate: {events: count(*)}}
        sinks: {out: {from: totals, topic: "@out", mode: update}}
    """,
    "two streams": """
      both: {sql: "select id, v from good where id > 100 union all select id, v from others where id > 100"}
        sinks: {out: {from: both, topic: "@out"}}
    """,
    "a query": """
      some: {sql: "select * from (select id, v from good) where id > 100"}
        sinks: {out: {from: some, topic: "@out"}}
        views: {last: {from: some, key: [id]}}
    """,
}
LIKE_OTHERS = ("files", "state")  # checked where "a query" and "a view of an aggregate" are


def definition(readers: str) -> str:
    """The steps of `readers` continue those of `HEAD`."""
    return HEAD + readers.replace("\n        ", "\n    ")


@pytest.mark.more(but="a query")
@pytest.mark.spark
@pytest.mark.parametrize(
    "readers", [pytest.param(text, marks=[pytest.mark.soak] * (name in LIKE_OTHERS)) for name, text in READERS.items()],
    ids=READERS,
)  # fmt: skip
def test_a_flow_that_reads_the_step_does_not_pass_the_row(stage: Stage, readers: str) -> None:
    stage.create("in")
    stage.produce("in", [{"id": 101, "v": 1}])
    pipeline = stage.pipeline(definition(readers))
    stage.run(pipeline)
    before = {each.flow: each.finished for each in Checkpoints(pipeline).flows()}
    stage.produce("in", [{"id": 1, "v": 0}, {"id": 102, "v": 5}])
    engine = StandardEngine(stage.spark, plan_again(pipeline), prepare_topics(pipeline))
    for flow in before:  # one at a time, so that none is stopped by the failure of another
        with pytest.raises(PipelineFailed, match=r"positive', which stops the pipeline") as failed:
            caught_up(engine.start(until_caught_up=True, only=[flow]))
        assert retry_of(failed.value) is Retry.NEVER
    assert {each.flow: each.finished for each in Checkpoints(pipeline).flows()} == before


@pytest.mark.more
@pytest.mark.spark
def test_a_step_of_static_rows_fails_the_run_that_reads_it(stage: Stage) -> None:
    (stage.folder / "pumps.csv").write_text("1,ok\n2,\n")
    stage.create("in")
    stage.produce("in", [{"id": 1}])
    pipeline = stage.pipeline("""
        sources:
          rows: {topic: "@in", schema: "id BIGINT"}
          pumps: {files: {path: pumps.csv, format: csv}, schema: "id BIGINT, name STRING"}
        steps:
          named: {sql: select * from pumps, expect: {named: {check: name is not null, otherwise: fail}}}
          joined: {sql: select * from rows join named using (id)}
        sinks: {out: {from: joined, topic: "@out"}}
    """)
    with pytest.raises(PipelineError, match=r"named', which stops the pipeline"):
        stage.run(pipeline)
    assert stage.read("out") == []


def test_a_flow_writes_nothing_after_the_failure_of_another() -> None:
    made = Running(MagicMock())
    made.refuse_after_failure("one")
    made.note("one", PipelineError("no"))
    made.refuse_after_failure("one")
    with pytest.raises(FlowStopped, match="flow one failed; the batch is not written") as stopped:
        made.refuse_after_failure("other")
    made.note("other", stopped.value)
    ended = MagicMock(isActive=False)
    made.queries = {"other": ended, "one": ended}
    with pytest.raises(PipelineFailed, match="one: no"):
        made.raise_failure()
