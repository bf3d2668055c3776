"""The realtime engine writes what the standard engine writes, by one pass over the source."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from confluent_kafka.admin import AdminClient

from odradek.pipelines.definition.graph import build_graph
from odradek.pipelines.definition.vocabulary import Engine
from odradek.pipelines.operating.checkpoint_files import Checkpoints
from odradek.pipelines.spark.continuing import CheckpointRefused, continuing
from odradek.pipelines.spark.engines.realtime import RealtimeEngine, whole_flow
from odradek.pipelines.spark.engines.realtime_branches import branches_of
from odradek.pipelines.spark.engines.realtime_tasks import branch_tasks, pass_tasks
from odradek.pipelines.spark.expectations import ExpectationFailed
from odradek.pipelines.spark.failures import PipelineError
from odradek.pipelines.spark.launching import RunCallbacks, RunOptions, start_streams
from odradek.pipelines.spark.one_pass.passing import whole_pass
from odradek.pipelines.spark.one_pass.row_columns import NotLiftable
from odradek.pipelines.spark.sources import read_once
from odradek.pipelines.spark.topics import check_topics, prepare_topics
from tests.pipelines.spark.stage import WAIT_S, Stage, renamed
from tests.pipelines.spark.test_topics import BAD, DEFINITION, check_outputs, fill
from tests.waiting import eventually

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from odradek.pipelines.definition.model import Pipeline, Source

pytestmark = pytest.mark.spark

STRANGE = """
dead_letters: "@dead"
sources:
  readings:
    topic: "@in"
    schema: "id BIGINT NOT NULL, pressure DOUBLE, meter STRUCT<unit: STRING>"
    columns: {half: pressure / 2}
steps:
  good:
    sql: select r.*, meter.*, 'it\\'s' as `a name` from readings as r where r.id is not null
    expect:
      plausible: {check: pressure between 0 and 400, otherwise: quarantine}
      small: {check: id < 7, otherwise: drop}
  limits:
    sql: |
      select id, concat(what, if(value > highest, ' high', ' low')) as rule, cast(value as int) as value, l.highest
      from good lateral view stack(2, 'pressure', pressure, 100, 'half', half, 20) l as what, value, highest
      where value > highest
  items:
    sql: select id, Item from good lateral view explode(array(id, id * 10)) as Item
  parts:
    sql: select * from items lateral view explode(if(Item > 10, array(Item, -Item), null)) as Part
sinks:
  all: {from: good, topic: "@all", key: id, headers: {unit: unit, name: "`a name`"}}
  limits: {from: limits, topic: "@limits", key: _key}
  parts: {from: parts, topic: "@parts"}
  items: {from: items, topic: "@items", value: ["concat(id, '/', item)"], format: text}
"""


def records(frame: DataFrame) -> list[tuple[object, ...]]:
    rows = [
        (
            row.topic,
            bytes(row.key or b""),
            bytes(row.value or b"-"),
            [(each.key, bytes(each.value or b"-")) for each in row.headers],
        )
        for row in frame.collect()
    ]
    return sorted(rows, key=repr)


def both(stage: Stage, pipeline: Pipeline) -> tuple[list[tuple[object, ...]], list[tuple[object, ...]]]:
    """The output of one pass, and that of one branch per output, over all existing records."""
    cluster, graph = prepare_topics(pipeline), build_graph(pipeline)

    def load(source: Source) -> DataFrame:
        return read_once(stage.spark, source, pipeline, cluster.partitions_of)

    source = pipeline.sources[0]
    made = whole_pass(pipeline, whole_flow(pipeline, graph, source.name), load(source))
    ((_, written),) = made.records_in(made.observed())
    lifted = records(written)
    branched = [row for branch in branches_of(stage.spark, pipeline, graph, load).each for row in records(branch.frame)]
    return lifted, sorted(branched, key=repr)


@pytest.mark.parametrize(
    "definition", [DEFINITION, pytest.param(STRANGE.replace("key: _key", "key: id"), marks=pytest.mark.soak)]
)
def test_one_pass_writes_what_branches_write(stage: Stage, definition: str) -> None:
    fill(stage)
    lifted, branched = both(stage, stage.pipeline(definition))
    assert len(lifted) > len(BAD)
    assert lifted == branched


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


def test_fields_are_those_of_their_step_and_only_of_rows_that_are_there(stage: Stage) -> None:
    """Covers names that the record has too, names in another case, and an expression that fails without a row."""
    stage.create("in")
    values = [
        {"id": 1, "pressure": 100},
        {"id": 2, "pressure": 100},
        {"id": 3, "pressure": 500},
        {"id": 5, "pressure": -1},
    ]
    stage.produce("in", [*values, b"no JSON", {"id": 7}, {"id": 9, "pressure": 2}])
    lifted, branched = both(stage, stage.pipeline(CAREFUL))
    assert lifted == branched
    assert sorted(str(record[0]).partition("-")[2] for record in lifted) == (
        ["dead"] * 2 + ["more"] * 6 + ["reported"] * 2 + ["sound"] * 2
    )
    assert {dict(record[3])["topic"] for record in lifted if str(record[0]).endswith("reported")} == {  # type: ignore[call-overload]  # pairs
        f"my {stage.topic('in')}".encode()
    }


NOT_LIFTED = [
    "select id from readings union all select -id from readings",
    "select explode(array(id, id)) as each from readings",
]
REFUSED_BY_PARSER_OR_LIST = [  # tests/pipelines/spark/one_pass checks the same without a broker
    "select distinct id from readings",
    "select id, current_user() as name from readings",
    "select id, i from readings lateral view explode(array(1)) as i lateral view explode(array(2)) as j",
    "select * except (id), 1 as one from readings",
    "select id, arrays_zip(array(id), array(id)) as pairs from readings",
    "select id + 1 as more, more * 2 as twice from readings",
    "select id, hash(*) as all from readings",
    "select filter(array(1, 2), id -> id > readings.id) as high from readings",
]


@pytest.mark.parametrize(
    "sql", [*NOT_LIFTED, *(pytest.param(sql, marks=pytest.mark.soak) for sql in REFUSED_BY_PARSER_OR_LIST)]
)
def test_what_cannot_be_lifted_is_left_to_branches(stage: Stage, sql: str) -> None:
    fill(stage)
    pipeline = stage.pipeline(f"""
        sources: {{readings: {{topic: "@in", schema: "id BIGINT"}}}}
        steps: {{both: {{sql: "{sql}"}}}}
        sinks: {{all: {{from: both, topic: "@out", mode: update}}}}
        """)
    with pytest.raises(NotLiftable):
        both(stage, pipeline)


def test_records_leave_while_the_batch_runs(stage: Stage) -> None:
    fill(stage)
    pipeline = renamed(stage.pipeline(DEFINITION), engine=Engine.REALTIME)
    running = RealtimeEngine(stage.spark, pipeline, prepare_topics(pipeline)).start()
    try:
        give_up_at = time.monotonic() + WAIT_S
        while len(stage.read("dead")) < len(BAD) or len(stage.read("out")) < 2 or not stage.read("warnings"):
            running.raise_failure()
            assert time.monotonic() < give_up_at
            time.sleep(0.2)  # a poll's pause
    finally:
        running.stop()
    check_outputs(stage)


def test_outputs_that_need_branches_run_in_one_query(stage: Stage) -> None:
    """Real-time mode refuses branches that share a reader of their source."""
    stage.create("in", 1)
    stage.produce("in", [{"id": 1}, b"no JSON"])
    pipeline = stage.pipeline("""
        dead_letters: "@dead"
        sources: {readings: {topic: "@in", schema: "id BIGINT"}}
        steps: {each: {sql: "select explode(array(id, id)) as id from readings"}}
        sinks: {all: {from: each, topic: "@out"}}
        """)
    realtime = renamed(pipeline, engine=Engine.REALTIME)
    running = RealtimeEngine(stage.spark, realtime, prepare_topics(realtime)).start()
    try:
        give_up_at = time.monotonic() + WAIT_S
        while len(stage.read("out")) < 2 or not stage.read("dead"):
            running.raise_failure()
            assert time.monotonic() < give_up_at
            time.sleep(0.2)  # a poll's pause
    finally:
        running.stop()


def test_a_checkpoint_is_refused_if_spark_would_give_an_output_the_offsets_of_another(stage: Stage) -> None:
    stage.create("in", 1)
    sinks = ['first: {from: each, topic: "@first"}', 'second: {from: each, topic: "@second"}']

    def run(step: str, sinks: list[str]) -> None:
        pipeline = renamed(
            stage.pipeline(f"""
                sources: {{readings: {{topic: "@in", schema: "id BIGINT"}}}}
                steps: {{each: {{sql: "select {step} as id from readings"}}}}
                sinks: {{{", ".join(sinks)}}}
                """),
            engine=Engine.REALTIME,
        )
        cluster = prepare_topics(pipeline)
        with continuing(pipeline, cluster, print) as starts:
            running = start_streams(stage.spark, pipeline, cluster, starts, RunOptions(), RunCallbacks(print, print))
            try:
                eventually(Checkpoints(pipeline).begun, seconds=WAIT_S)
            finally:
                running.stop()

    run("explode(array(id))", sinks)
    with pytest.raises(CheckpointRefused, match="sink first, readings for sink second → readings for sink second, "):
        run("explode(array(id))", sinks[::-1])
    with pytest.raises(CheckpointRefused, match="→ readings for all outputs"):
        run("id", sinks)
    run("explode(array(id, id))", sinks)


def test_a_table_of_any_size_is_broadcast(stage: Stage) -> None:
    """Real-time mode runs no other join; Spark takes the tables of databases for too large to be broadcast."""
    stage = replace(stage, spark=stage.spark.newSession())
    stage.spark.conf.set("spark.sql.autoBroadcastJoinThreshold", "-1")
    (stage.folder / "names.json").write_text('{"id": 1, "name": "one"}\n{"id": 1, "name": "two"}\n')
    stage.create("in", 1)
    stage.produce("in", [{"id": 1}, {"id": 2}])
    pipeline = stage.pipeline("""
        sources:
          readings: {topic: "@in", schema: "id BIGINT"}
          names: {files: {path: names.json, format: json}, schema: "id BIGINT, name STRING"}
        steps:
          last: {sql: "select id, max(name) as name from names group by id"}
          named: {sql: "select r.id, n.name, l.name as last from readings r left join names n on r.id = n.id
            left join last l on r.id = l.id"}
        sinks: {named: {from: named, topic: "@out"}}
        """)
    realtime = renamed(pipeline, engine=Engine.REALTIME)
    running = RealtimeEngine(stage.spark, realtime, prepare_topics(realtime)).start()
    try:
        give_up_at = time.monotonic() + WAIT_S
        while len(stage.read("out")) < 3:
            running.raise_failure()
            assert time.monotonic() < give_up_at
            time.sleep(0.2)  # a poll's pause
    finally:
        running.stop()
    assert sorted(each.json["name"] or "" for each in stage.read("out")) == ["", "one", "two"]


def test_a_row_that_must_stop_the_pipeline_needs_one_pass(stage: Stage) -> None:
    """Branches drop such rows, and go on."""
    fill(stage)
    pipeline = stage.pipeline("""
        sources: {readings: {topic: "@in", schema: "id BIGINT"}}
        steps:
          each: {sql: "select explode(array(id)) as id from readings", expect: {low: {check: id < 5, otherwise: fail}}}
        sinks: {all: {from: each, topic: "@out"}}
        """)
    engine = RealtimeEngine(stage.spark, renamed(pipeline, engine=Engine.REALTIME), prepare_topics(pipeline))
    with pytest.raises(PipelineError, match=r"cannot stop at rows of step 'each'.*explode\(\).*use engine: standard"):
        engine.start()


STATIC_FAIL = """
    sources:
      readings: {topic: "@in", schema: "id BIGINT"}
      names: {files: {path: names.json, format: json}, schema: "id BIGINT, name STRING"}
    steps:
      known: {sql: "select id, name from names", expect: {named: {check: name is not null, otherwise: fail}}}
      named: {sql: "select r.id, k.name from readings r join known k on r.id = k.id"}
    sinks: {named: {from: named, topic: "@out"}}
"""


def test_a_static_row_that_must_stop_the_pipeline_stops_its_start(stage: Stage) -> None:
    """Branches are no reason to refuse it: the table is checked before any of them starts."""
    stage.create("in", 1)
    stage.produce("in", [{"id": 1}])
    names = stage.folder / "names.json"
    names.write_text('{"id": 1, "name": "one"}\n{"id": 2, "name": null}\n')
    realtime = renamed(stage.pipeline(STATIC_FAIL), engine=Engine.REALTIME)
    engine = RealtimeEngine(stage.spark, realtime, check_topics(realtime))
    with pytest.raises(ExpectationFailed, match="step 'known': a row does not meet 'named', which stops the pipeline"):
        engine.start()
    assert stage.topic("out") not in AdminClient({"bootstrap.servers": stage.bootstrap_servers}).list_topics().topics
    names.write_text('{"id": 1, "name": "one"}\n')
    running = engine.start()
    try:
        eventually(lambda: stage.read("out"), seconds=WAIT_S)
    finally:
        running.stop()


BRANCHES = """
    dead_letters: "@dead"
    sources: {readings: {topic: "@in", schema: "id BIGINT"}}
    steps:
      each:
        sql: "select explode(array(id)) as id from readings"
        expect: {low: {check: id < 5, otherwise: quarantine}}
    sinks: {all: {from: each, topic: "@out"}}
"""


def test_too_few_threads_are_refused(stage: Stage) -> None:
    """Three branches of three partitions; the tasks that do not start would lose their records without an error."""
    stage.create("in", 3)
    pipeline = renamed(stage.pipeline(BRANCHES), engine=Engine.REALTIME)
    cluster = prepare_topics(pipeline)
    assert (pass_tasks(pipeline, cluster), branch_tasks(pipeline, cluster)) == (3, 9)
    with pytest.raises(PipelineError, match=r"runs 9 tasks at once.*local\[8\] has threads for 8.*use local\[9\]"):
        RealtimeEngine(stage.spark, pipeline, cluster).start()


def test_an_older_spark_is_refused_with_a_way_out(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("odradek.pipelines.definition.spark_version.version", lambda _name: "4.1.1")
    stage.create("in")
    pipeline = stage.pipeline(DEFINITION)
    with pytest.raises(PipelineError, match=r"needs PySpark 4.3, and 4.1.1 is installed; install .* engine: standard"):
        RealtimeEngine(stage.spark, pipeline, prepare_topics(pipeline)).start()
