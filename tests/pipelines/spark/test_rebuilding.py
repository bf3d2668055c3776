"""Views rebuilt from the log, streams that continue afterwards, and definitions that do not match a checkpoint."""

from __future__ import annotations

import contextlib
import textwrap
from typing import TYPE_CHECKING, Any

import pytest
import sqlalchemy as sa
from confluent_kafka.admin import AdminClient, NewPartitions  # type: ignore[attr-defined]  # not in __all__

from odradek.cli.pipeline.reset import parse_range
from odradek.conventions.failures import Failure
from odradek.pipelines.definition.model import Start, TableTarget, TopicOrigin
from odradek.pipelines.definition.vocabulary import StartAt
from odradek.pipelines.operating.checkpoints import Checkpoints
from odradek.pipelines.planning.rules import plan_again
from odradek.pipelines.spark.engines.standard import run_batch
from odradek.pipelines.spark.rebuilding import Rebuilding, changing, end_of, pipeline_for, rebuild_views, refuse_lossy
from odradek.pipelines.spark.resuming import CheckpointRefused, CheckpointTaken, exclusive_access, resuming
from odradek.pipelines.spark.sessions.failures import PipelineError
from odradek.pipelines.spark.writing.topics import prepare_topics
from tests.pipelines.definition.definitions import sound
from tests.pipelines.spark.stage import PATIENCE_S, await_partitions, renamed

if TYPE_CHECKING:
    from odradek.pipelines.definition.model import Pipeline
    from odradek.pipelines.planning.plan import Plan
    from odradek.pipelines.spark.computing.counts import BatchReport
    from tests.pipelines.spark.stage import Stage

DEFINITION = """
    warehouse: sqlite:///w.db
    sources: {rows: {topic: "@in", schema: "id BIGINT, v BIGINT", start: earliest}}
    steps: {good: {sql: "select id, v from rows", expect: {whole: {check: v >= 0, otherwise: drop}}}}
    sinks: {out: {from: good, topic: "@out"}}
    views:
      last: {from: good, key: [id], order_by: v, url: "sqlite:///other.db"}
      totals: {from: good, by: [id], aggregate: {events: count(*), total: sum(v)}}
"""


def quiet(_text: str) -> None:
    pass


def run(stage: Stage, pipeline: Pipeline) -> list[BatchReport]:
    """Runs like `odradek pipeline run`, in the existing session."""
    with resuming(plan_again(pipeline), prepare_topics(pipeline), quiet) as starts:
        return stage.run(pipeline, starts=starts)


def rows(stage: Stage, table: str, file: str = "w.db") -> list[tuple[Any, ...]]:
    with changing(f"sqlite:///{stage.folder / file}") as connection:
        return sorted(tuple(row) for row in connection.execute(sa.text(f"SELECT * FROM {table}")))


def rebuild(stage: Stage, pipeline: Pipeline, *names: str) -> dict[str, int]:
    """Rebuilds tables and views, by default all; returns their numbers of rows."""
    plan = plan_again(pipeline)
    rebuilding = Rebuilding(stage.spark, plan, prepare_topics(pipeline), quiet)
    tables = [each for each in plan.ends if isinstance(each.target, TableTarget)]
    return {each.name: rebuilding.rebuild(each) for each in tables if not names or each.name in names}


def planned(text: str) -> Plan:
    return plan_again(sound(f"pipeline: p\n{textwrap.dedent(text)}"))


def refuse(plan: Plan) -> None:
    """Raises what a rebuild of the table or view `one` is refused with."""
    (end,) = [each for each in plan.ends if each.name == "one"]
    refuse_lossy(plan, end)


@pytest.mark.spark
def test_views_are_rebuilt_and_the_stream_goes_on(stage: Stage) -> None:
    stage.create("in")
    stage.produce("in", [{"id": 1, "v": 1}, {"id": 2, "v": 2}, {"id": 1, "v": 3}, {"id": 2, "v": -1}])
    pipeline = stage.pipeline(DEFINITION)
    run(stage, pipeline)
    stage.produce("in", [{"id": 3, "v": 7}], partition=1)  # not read by the stream, so not in a view of latest rows
    with changing(f"sqlite:///{stage.folder / 'other.db'}") as connection:
        connection.execute(sa.text("UPDATE last SET v = 99"))
    with changing(f"sqlite:///{stage.folder / 'w.db'}") as connection:
        connection.execute(sa.text("DROP TABLE totals"))
    assert rebuild(stage, pipeline) == {"last": 2, "totals": 3}
    assert rows(stage, "last", "other.db") == [(1, 3), (2, 2)]
    assert rows(stage, "totals") == [(1, 2, 4), (2, 1, 2), (3, 1, 7)]
    stage.produce("in", [{"id": 1, "v": 4}])
    run(stage, pipeline)
    assert rows(stage, "last", "other.db") == [(1, 4), (2, 2), (3, 7)]
    assert rows(stage, "totals") == [(1, 3, 8), (2, 1, 2), (3, 1, 7)]  # the state continued, nothing was counted twice
    assert len(stage.read("out")) == 5


@pytest.mark.more
@pytest.mark.spark
def test_a_changed_view_is_refused_until_it_is_rebuilt(stage: Stage) -> None:
    """Other changes, of an expectation and by a further sink, are of no view."""
    stage.create("in")
    stage.produce("in", [{"id": 1, "v": 1}])
    run(stage, stage.pipeline(DEFINITION))
    text = DEFINITION.replace("v >= 0", "v > 0").replace("sinks: {", 'sinks: {more: {from: good, topic: "@more"}, ')
    changed = stage.pipeline(text.replace("total: sum(v)", "most: max(v)"))
    with pytest.raises(CheckpointRefused, match=r"view totals: aggregate by id: .*sum.* → .*max"):
        run(stage, changed)
    rebuild(stage, changed, "totals")
    stage.produce("in", [{"id": 1, "v": 0}, {"id": 1, "v": 5}])
    run(stage, changed)
    assert rows(stage, "totals") == [(1, 2, 5)]
    assert [each.json["v"] for each in stage.read("more")] == [5]


REFUSED = {
    "sink 'one': 'other' writes the same table": """
        sources: {rows: {topic: a, schema: "id BIGINT"}, others: {topic: b, schema: "id BIGINT"}}
        sinks: {one: {from: rows, table: t}, other: {from: others, table: T}}
    """,
    "step 'watched' keeps state with timers, which do not fire": """
        sources: {rows: {topic: a, schema: "id BIGINT, at TIMESTAMP", watermark: {column: at, delay: 1 minute}}}
        steps:
          watched:
            from: rows
            state: {key: [id], processor: "textwrap:TextWrapper", timeout: 1 minute}
            schema: id BIGINT
        sinks: {one: {from: watched, table: t}}
    """,
    "view 'one': its changes derive from state": """
        sources: {rows: {topic: a, schema: "id BIGINT, v BIGINT"}}
        steps: {once: {from: rows, deduplicate: {key: [id]}}}
        views: {one: {from: once, changes: {key: [id], sequence: v}}}
    """,
    "sink 'one': its rows derive from state and are appended": """
        sources: {rows: {topic: a, schema: "id BIGINT, at TIMESTAMP", watermark: {column: at, delay: 1 minute}}}
        steps: {n: {from: rows, window: {column: at, size: 1 minute}, aggregate: {n: count(*)}}}
        sinks: {one: {from: n, table: n}}
    """,
}


@pytest.mark.parametrize(("reason", "text"), REFUSED.items())
def test_a_table_that_a_batch_would_not_compute_is_not_rebuilt(reason: str, text: str) -> None:
    with pytest.raises(PipelineError, match=reason):
        refuse(planned(text))


def test_a_table_whose_new_name_postgresql_would_cut_is_not_rebuilt() -> None:
    """The cut name is not found afterwards, so that the old table would be emptied."""
    long, most = (
        planned(f"""
        warehouse: postgresql://h/d
        sources: {{rows: {{topic: a, schema: "id BIGINT"}}}}
        sinks: {{one: {{from: rows, table: {"t" * length}}}}}
        """)
        for length in (55, 54)
    )
    refuse(most)
    with pytest.raises(PipelineError, match="of whose name PostgreSQL has 63 bytes only"):
        refuse(long)


@pytest.mark.more
@pytest.mark.spark
def test_a_rebuild_reads_the_records_that_the_stream_has_read(stage: Stage) -> None:
    """Neither those before a stream with start: latest, nor those of a partition that it will read later."""
    stage.create("in", partitions=1)
    stage.produce("in", [{"id": 1, "v": 1}, {"id": 2, "v": 2}])
    pipeline = stage.pipeline("""
        warehouse: sqlite:///w.db
        sources: {rows: {topic: "@in", schema: "id BIGINT, v BIGINT", start: latest}}
        sinks: {all: {from: rows, table: all_rows}}
    """)
    run(stage, pipeline)
    stage.produce("in", [{"id": 3, "v": 3}])
    run(stage, pipeline)
    assert rows(stage, "all_rows") == [(3, 3)]
    admin = AdminClient({"bootstrap.servers": stage.bootstrap_servers})
    admin.create_partitions([NewPartitions(stage.topic("in"), 2)])[stage.topic("in")].result(PATIENCE_S)
    await_partitions(stage.bootstrap_servers, stage.topic("in"), 2)
    stage.produce("in", [{"id": 4, "v": 4}], partition=1)
    rebuild(stage, pipeline)
    assert rows(stage, "all_rows") == [(3, 3)]
    run(stage, pipeline)
    assert rows(stage, "all_rows") == [(3, 3), (4, 4)]


WITH_STATIC_TOPICS = """
    warehouse: sqlite:///w.db
    sources:
      rows: {topic: "@in", schema: "id BIGINT, v BIGINT"}
      names: {topic: "@names", schema: "id BIGINT, name STRING", stream: false}
      kinds: {pattern: "@kind.", schema: "id BIGINT, kind STRING", stream: false}
    steps:
      named: {sql: "select r.id, v, name from rows r join names n on r.id = n.id"}
      s: {sql: "select n.*, k.kind from named n left join kinds k on n.id = k.id"}
    sinks: {all: {from: s, table: all_rows}}
"""


@pytest.mark.more
@pytest.mark.spark
def test_a_rebuild_and_a_backfill_read_the_whole_of_a_static_topic(stage: Stage) -> None:
    for name in ("in", "names", "kinds"):
        stage.create(name)
    stage.produce("in", [{"id": 1, "v": 1}, {"id": 2, "v": 2}])
    stage.produce("names", [{"id": 1, "name": "a"}])
    stage.produce("names", [{"id": 2, "name": "b"}], partition=1)
    stage.produce("kinds", [{"id": 1, "kind": "x"}, {"id": 2, "kind": "y"}], partition=1)
    pipeline = stage.pipeline(WITH_STATIC_TOPICS)
    run(stage, pipeline)
    assert rows(stage, "all_rows") == [(1, 1, "a", "x"), (2, 2, "b", "y")]
    stage.produce("in", [{"id": 1, "v": 3}])
    rebuild(stage, pipeline)
    assert rows(stage, "all_rows") == [(1, 1, "a", "x"), (2, 2, "b", "y")]
    span = parse_range([f"{stage.topic('in')}:0:2"], [], pipeline)
    run_batch(stage.spark, plan_again(pipeline), prepare_topics(pipeline), span)
    assert rows(stage, "all_rows") == [(1, 1, "a", "x"), (1, 3, "a", "x"), (2, 2, "b", "y")]
    with pytest.raises(Failure, match="is read as a whole, because its source has stream: false"):
        parse_range([f"{stage.topic('names')}:0:1"], [], pipeline)


@pytest.mark.spark
def test_a_run_begins_where_a_reset_has_said(stage: Stage) -> None:
    stage.create("in")
    stage.produce("in", [{"id": number, "v": 0} for number in range(5)])
    pipeline = stage.pipeline(DEFINITION.split("views:", maxsplit=1)[0])
    run(stage, pipeline)
    kept = Checkpoints(pipeline)
    begun = kept.begun()
    for flow in begun:
        kept.forget(flow)
    kept.note_start(begun, Start(StartAt.OFFSETS, offsets={stage.topic("in"): {0: 3}}))
    run(stage, pipeline)
    assert [each.json["id"] for each in stage.read("out")] == [0, 1, 2, 3, 4, 3, 4]
    assert kept.starts() == {}  # the stored start is dropped once there is a new checkpoint
    run(stage, pipeline)
    assert len(stage.read("out")) == 7


@pytest.mark.spark
def test_a_checkpoint_has_one_at_a_time(stage: Stage) -> None:
    stage.create("in")
    pipeline = stage.pipeline(DEFINITION)
    with contextlib.ExitStack() as stack:
        stack.enter_context(exclusive_access(Checkpoints(pipeline), "p"))
        with pytest.raises(CheckpointTaken, match=r"another process .* uses the checkpoint"):
            run(stage, pipeline)


@pytest.mark.spark
def test_a_backfill_reads_the_offsets_that_are_named_and_no_others(stage: Stage) -> None:
    stage.create("in")
    for partition in (0, 1):
        stage.produce("in", [{"id": number, "v": partition} for number in range(5)], partition=partition)
    pipeline = stage.pipeline(DEFINITION.split("views:", maxsplit=1)[0])
    topic = stage.topic("in")
    span = parse_range([f"{topic}:0:1"], [f"{topic}:0:4"], pipeline)
    run_batch(stage.spark, plan_again(pipeline), prepare_topics(pipeline), span)
    assert [(each.json["id"], each.json["v"]) for each in stage.read("out")] == [(1, 0), (2, 0), (3, 0)]


def test_checkpoints_that_cannot_be_looked_into_are_not_rebuilt_beside() -> None:
    pipeline = renamed(planned(DEFINITION.replace("@", "")).pipeline, checkpoints="s3a://bucket/p")
    with pytest.raises(PipelineError, match="the checkpoints of p are in s3a://bucket/p"):
        rebuild_views(pipeline, pipeline.views, quiet, lambda _view, _rows: None)


def test_a_rebuild_reads_only_what_leads_to_its_view() -> None:
    plan = planned("""
        sources:
          rows: {topic: in, schema: "id BIGINT, v BIGINT", start: latest}
          others: {topic: others, schema: "id BIGINT"}
          names: {files: {path: names.csv, format: csv}, schema: "id BIGINT, name STRING"}
        steps:
          named: {sql: "select rows.id, v, name from rows join names on rows.id = names.id"}
          apart: {sql: "select * from others"}
        sinks: {out: {from: apart, topic: out}}
        views: {last: {from: named, key: [id], order_by: v}}
    """)
    alone = pipeline_for(end_of(plan, "last", is_view=True), plan)
    assert [each.name for each in alone.sources] == ["rows", "names"]
    assert [each.name for each in alone.steps] == ["named"]
    origin = alone.sources[0].origin
    assert isinstance(origin, TopicOrigin)
    assert origin.start == Start()
    assert (alone.sinks, [each.name for each in alone.views]) == ((), ["last__rebuilt"])
