"""The realtime engine writes what the standard engine writes, by one pass over the source."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from odradek.pipelines.definition.graph import build_graph
from odradek.pipelines.definition.vocabulary import Engine, Otherwise
from odradek.pipelines.spark.compiling import Tables
from odradek.pipelines.spark.dead_letters import dead_letters
from odradek.pipelines.spark.engines.realtime import RealtimeEngine, whole_flow
from odradek.pipelines.spark.engines.realtime_tasks import tasks_of
from odradek.pipelines.spark.expectations import quarantined
from odradek.pipelines.spark.one_pass.passing import whole_pass
from odradek.pipelines.spark.one_pass.row_columns import NotLiftable
from odradek.pipelines.spark.reading.records import rejects_of
from odradek.pipelines.spark.reading.sources import read_once
from odradek.pipelines.spark.sessions.failures import PipelineError
from odradek.pipelines.spark.sinks.batches import topic_frames
from odradek.pipelines.spark.writing.topics import prepare_topics
from tests.pipelines.spark.stage import WAIT_S, Stage, renamed
from tests.pipelines.spark.writing.test_topics import BAD, DEFINITION, check_outputs, fill

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
    """The output of one pass, and that of each sink and its dead letters by themselves, over all existing records."""
    cluster, graph = prepare_topics(pipeline), build_graph(pipeline)

    def load(source: Source) -> DataFrame:
        return read_once(stage.spark, source, pipeline, cluster.partitions_of)

    source = pipeline.sources[0]
    made = whole_pass(pipeline, whole_flow(pipeline, graph, source.name), load(source))
    ((_, written),) = made.records_in(made.observed())
    lifted = records(written)
    tables = Tables(stage.spark, pipeline, graph, load)
    apart = [frame for _, frame in topic_frames(pipeline.sinks, tables, pipeline)]
    if pipeline.dead_letters is not None:
        judged = [
            each for each in pipeline.steps if Otherwise.QUARANTINE in {rule.otherwise for rule in each.expectations}
        ]
        refused = {source.name: rejects_of(tables.decoded(source.name))}
        refused |= {each.name: quarantined(tables.judged(each.name), each.expectations) for each in judged}
        apart += [dead_letters(each, pipeline.name, name, pipeline.dead_letters) for name, each in refused.items()]
    return lifted, sorted((row for frame in apart for row in records(frame)), key=repr)


@pytest.mark.parametrize(
    "definition", [DEFINITION, pytest.param(STRANGE.replace("key: _key", "key: id"), marks=pytest.mark.soak)]
)
def test_one_pass_writes_what_steps_by_themselves_write(stage: Stage, definition: str) -> None:
    fill(stage)
    lifted, apart = both(stage, stage.pipeline(definition))
    assert len(lifted) > len(BAD)
    assert lifted == apart


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
    lifted, apart = both(stage, stage.pipeline(CAREFUL))
    assert lifted == apart
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
def test_what_cannot_be_lifted_is_refused(stage: Stage, sql: str) -> None:
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


def test_sql_that_validate_does_not_know_is_refused_at_the_start(stage: Stage) -> None:
    stage.create("in", 1)
    pipeline = stage.pipeline("""
        sources: {readings: {topic: "@in", schema: "id BIGINT"}}
        steps: {each: {sql: "select id, current_user() as name from readings"}}
        sinks: {all: {from: each, topic: "@out"}}
        """)
    engine = RealtimeEngine(stage.spark, renamed(pipeline, engine=Engine.REALTIME), prepare_topics(pipeline))
    with pytest.raises(PipelineError, match=r"cannot run SQL .*current_user.*or use engine: standard"):
        engine.start()


def test_too_few_threads_are_refused(stage: Stage) -> None:
    """The tasks that do not start would lose their records without an error."""
    stage.create("in", 9)
    pipeline = renamed(stage.pipeline(DEFINITION), engine=Engine.REALTIME)
    cluster = prepare_topics(pipeline)
    assert tasks_of(pipeline, cluster) == 9
    with pytest.raises(PipelineError, match=r"runs 9 tasks at once.*local\[8\] has threads for 8.*use local\[9\]"):
        RealtimeEngine(stage.spark, pipeline, cluster).start()


def test_an_older_spark_is_refused_with_a_way_out(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("odradek.pipelines.definition.spark_version.version", lambda _name: "4.1.1")
    stage.create("in")
    pipeline = stage.pipeline(DEFINITION)
    with pytest.raises(PipelineError, match=r"needs PySpark 4.3, and 4.1.1 is installed; install .* engine: standard"):
        RealtimeEngine(stage.spark, pipeline, prepare_topics(pipeline)).start()
