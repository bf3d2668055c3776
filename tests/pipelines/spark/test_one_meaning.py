"""A definition has the same result over one batch, over several, in the batch engine, and before every kind of sink.

The source is a folder of files of which each is one micro-batch.
"""

from __future__ import annotations

import json
import sqlite3
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as F  # noqa: N812 - its usual name

from odradek.pipelines.definition.operations import Deduplication
from odradek.pipelines.definition.vocabulary import Duration
from odradek.pipelines.spark.deduplication import deduplicate
from odradek.pipelines.spark.plan_determinism import random_part, reads_clock
from odradek.pipelines.spark.stateful_plans import aggregates, keeps_state, mixes_rows, removes_groups, removes_rows
from odradek.pipelines.spark.steps import StepBroken
from tests.pipelines.spark.file_batches import give_files, seconds_after_noon
from tests.pipelines.spark.stage import WAIT_S

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pyspark.sql import SparkSession

    from tests.pipelines.spark.stage import Stage

pytestmark = pytest.mark.spark

SOURCE = """
warehouse: sqlite:///w.db
sources:
  readings:
    files: {path: in, format: json, options: {maxFilesPerTrigger: 1}}
    stream: true
    schema: "id BIGINT, kind STRING, at TIMESTAMP, x BIGINT"
    watermark: {column: at, delay: 10 seconds}
"""


def reading(number: int, kind: str, seconds: float, x: int = 0) -> dict[str, Any]:
    return {"id": number, "kind": kind, "at": seconds_after_noon(seconds), "x": x}


def give(stage: Stage, batches: Sequence[Iterable[dict[str, Any]]]) -> None:
    give_files(stage.folder / "in", batches)


def table(stage: Stage, query: str) -> list[tuple[Any, ...]]:
    with sqlite3.connect(stage.folder / "w.db") as connection:
        return connection.execute(query).fetchall()


def files(stage: Stage, folder: str) -> list[dict[str, Any]]:
    texts = [file.read_text() for file in (stage.folder / folder).glob("*.json")]
    return [json.loads(line) for text in texts for line in text.splitlines()]


PAIRS = """
steps:
  lefts: {sql: "select id, at, x from readings where kind = 'l'"}
  rights: {sql: "select id, at, x from readings where kind = 'r'"}
  pairs: {sql: "select l.id, l.x as l, r.x as r from lefts l join rights r on l.id = r.id"}
  same: {sql: "select a.id, a.x as l, b.x as r from readings a, readings b where a.id = b.id and a.x < b.x"}
sinks:
  topic: {from: pairs, topic: "@pairs"}
  table: {from: pairs, table: pairs}
  files: {from: pairs, files: {path: pairs, format: json}}
  same: {from: same, table: same}
"""


def test_two_steps_of_a_stream_are_joined_over_the_stream_before_every_sink(stage: Stage) -> None:
    give(stage, [[reading(1, "l", 0, 1), reading(2, "l", 1, 2)], [reading(1, "r", 2, 5)], [reading(2, "r", 3, 6)]])
    stage.run(stage.pipeline(SOURCE + PAIRS))
    expected = [(1, 1, 5), (2, 2, 6)]
    assert sorted(tuple(each.json.values()) for each in stage.read("pairs")) == expected
    assert sorted(table(stage, "select id, l, r from pairs")) == expected
    assert sorted(tuple(each.values()) for each in files(stage, "pairs")) == expected
    assert sorted(table(stage, "select id, l, r from same")) == expected


FUNCTIONS = """
from pyspark.sql import functions as F


def counted(readings):
    return readings.groupBy("kind").count()


def per_minute(readings):
    return readings.groupBy(F.window("at", "1 minute"), "kind").count().select("kind", "count")


def loud(readings):
    return readings.select("id", F.upper("kind").alias("kind"))


def few(counts):
    return counts.where("n < 3")


def more(counts):
    return counts.selectExpr("kind", "n + 1 as n")


def sampled(readings):
    return readings.where(F.rand() < 0.1).select("id")


def whole(readings):
    return readings.where(readings.x < readings.count())
"""
COUNTS = """
steps:
  counted: {from: [readings], python: "own:counted", schema: "kind STRING, count BIGINT"}
  busy: {sql: "select kind, count * 10 as tens from counted"}
  per_minute: {from: [readings], python: "own:per_minute", schema: "kind STRING, count BIGINT"}
  loud: {from: [readings], python: "own:loud", schema: "id BIGINT, kind STRING"}
sinks:
  table: {from: counted, table: counts, key: [kind], mode: upsert}
  behind: {from: busy, table: tens, key: [kind], mode: upsert}
  files: {from: per_minute, files: {path: minutes, format: json}}
  minutes: {from: per_minute, table: minutes}
  loud: {from: loud, table: loud}
"""


@pytest.mark.soak
def test_a_function_that_groups_counts_over_the_stream(stage: Stage) -> None:
    (stage.folder / "own.py").write_text(FUNCTIONS)
    give(stage, [[reading(1, "l", 0)], [reading(2, "l", 1), reading(3, "r", 2)], [reading(4, "l", 90)]])
    stage.run(stage.pipeline(SOURCE + COUNTS))
    assert dict(table(stage, "select kind, count from counts")) == {"l": 3, "r": 1}
    assert dict(table(stage, "select kind, tens from tens")) == {"l": 30, "r": 10}
    minutes = [("l", 2), ("r", 1)]  # the first minute, which is final after 70 seconds
    assert sorted((each["kind"], each["count"]) for each in files(stage, "minutes")) == minutes
    assert sorted(table(stage, "select kind, count from minutes")) == minutes
    assert sorted(table(stage, "select id, kind from loud")) == [(1, "L"), (2, "L"), (3, "R"), (4, "L")]


def test_a_function_that_counts_the_whole_stream_is_refused_with_its_place(stage: Stage) -> None:
    (stage.folder / "own.py").write_text(FUNCTIONS)
    give(stage, [[reading(1, "l", 0)]])
    step = 'steps: {all: {from: [readings], python: "own:whole", schema: "id BIGINT"}}\n'
    pipeline = stage.pipeline(SOURCE + step + "sinks: {o: {from: all, table: o}}\n")
    with pytest.raises(StepBroken, match=r"pipeline\.yml:\d+:\d+: step 'all': .*no actions such as count\(\)"):
        stage.run(pipeline)


def test_a_function_whose_groups_are_never_final_is_refused_with_its_place(stage: Stage) -> None:
    (stage.folder / "own.py").write_text(FUNCTIONS)
    give(stage, [[reading(1, "l", 0)]])
    source = SOURCE.replace("    watermark: {column: at, delay: 10 seconds}\n", "")
    step = 'steps: {counted: {from: [readings], python: "own:counted", schema: "kind STRING, count BIGINT"}}\n'
    pipeline = stage.pipeline(source + step + 'sinks: {o: {from: counted, topic: "@o"}}\n')
    with pytest.raises(StepBroken, match=r"pipeline\.yml:\d+:\d+: error: step 'counted' aggregates a stream without"):
        stage.run(pipeline)


def test_a_function_that_removes_groups_before_a_table_is_refused_with_its_place(stage: Stage) -> None:
    (stage.folder / "own.py").write_text(FUNCTIONS)
    give(stage, [[reading(1, "l", 0)]])
    steps = "c: {from: readings, by: [kind], aggregate: {n: count(*)}}, %s: {from: [c], python: 'own:%s'}"
    for name in ("few", "more"):
        text = (
            f"{SOURCE}steps: {{{steps % (name, name)}}}\nsinks: {{o: {{from: {name}, table: {name}, key: [kind]}}}}\n"
        )
        if name == "more":
            stage.run(stage.pipeline(text))
        else:
            with pytest.raises(StepBroken, match=r"pipeline\.yml:\d+:\d+: error: step 'few' filters groups by a row"):
                stage.run(stage.pipeline(text))
    assert table(stage, "select kind, n from more") == [("l", 2)]


def test_a_function_with_random_values_is_refused_with_its_place(stage: Stage) -> None:
    (stage.folder / "own.py").write_text(FUNCTIONS)
    give(stage, [[reading(1, "l", 0)]])
    step = 'steps: {some: {from: [readings], python: "own:sampled", schema: "id BIGINT"}}\n'
    pipeline = stage.pipeline(SOURCE + step + "sinks: {o: {from: some, table: o}}\n")
    with pytest.raises(StepBroken, match=r"pipeline\.yml:\d+:\d+: step 'some' uses rand\(\), whose value differs"):
        stage.run(pipeline)


def test_random_parts_of_a_plan_are_found(spark: SparkSession) -> None:
    stream = spark.readStream.format("rate").load()
    static = spark.range(3).withColumnRenamed("id", "value").withColumn("r", F.rand())
    length = F.udf(len, "int")
    for found in (
        stream.withColumn("r", F.uuid()),
        stream.select(F.monotonically_increasing_id() + 1),
        stream.where(F.rand() < 0.1).groupBy("value").count(),
        stream.sample(0.1),
    ):
        assert random_part(found), found
    for accepted in (
        stream.withColumn("t", length(F.col("value").cast("string"))),
        stream.withColumn("t", length.asNondeterministic()(F.col("value").cast("string"))),
        stream.groupBy("value").agg(F.collect_list("timestamp"), F.first("timestamp")),
        stream.join(static, "value"),
    ):
        assert random_part(accepted) is None, accepted
    assert reads_clock(stream.withColumn("now", F.current_timestamp()))
    assert not reads_clock(stream)


def test_a_plan_that_cannot_be_read_counts_as_stateful(spark: SparkSession) -> None:
    stream = spark.readStream.format("rate").load()
    assert not keeps_state(stream.where("value > 1"))
    assert keeps_state(stream.groupBy("value").count())
    assert aggregates(stream.groupBy("value").count())
    assert not aggregates(stream.dropDuplicates(["value"]))
    assert keeps_state(stream.join(stream.select("value"), "value"))
    assert keeps_state(stream.limit(3))
    static = spark.range(3).withColumnRenamed("id", "value")
    assert not keeps_state(stream.join(static, "value", "left"))
    assert keeps_state(stream.join(static, "value", "right"))

    assert removes_rows(stream.where("value > 1"))
    assert removes_rows(stream.join(static, "value"))
    assert removes_rows(stream.select(F.explode(F.array("value"))))
    assert not removes_rows(stream.select((stream.value + 1).alias("value")).join(static, "value", "left"))
    assert not removes_rows(stream.select(F.explode_outer(F.array("value"))))

    means = stream.groupBy("value").agg(F.avg(F.second("timestamp")).alias("mean"))
    assert removes_groups(means.where("mean > 3").select("value"))
    assert removes_groups(means.join(static, "value"))
    assert not removes_groups(stream.where("value > 1").join(static, "value").groupBy("value").count())
    assert not removes_groups(means.join(static, "value", "left"))
    assert not removes_groups(stream.join(static.groupBy("value").count(), "value"))

    for mixed in (stream.repartition(8), stream.repartition("value"), stream.union(stream)):
        assert mixes_rows(mixed.where("value > 1"))
    assert mixes_rows(stream.join(static, "value"))
    assert not mixes_rows(stream.where("value > 1").coalesce(1).select("value"))

    class Unreadable:
        def __getattr__(self, name: str) -> Any:
            raise AttributeError(name)

    unreadable: Any = Unreadable()
    assert keeps_state(unreadable)
    assert aggregates(unreadable)


STATIC = """
  names: {files: {path: names.json, format: json}, schema: "kind STRING, name STRING"}
steps:
  known:
    sql: select * from names
    expect:
      has a name: {check: name is not null, otherwise: drop}
      is short: {check: length(name) < 5, otherwise: warn}
  named: {from: readings, join: {table: known, on: [kind]}}
  counted: {from: named, by: [name], aggregate: {n: count(*)}}
sinks:
  named: {from: named, table: named}
  counted: {from: counted, table: counted, key: [name]}
"""


@pytest.mark.soak
def test_rows_of_a_static_step_are_counted_once_in_each_engine(stage: Stage) -> None:
    give(stage, [[reading(1, "l", 0)], [reading(2, "r", 1)], [reading(3, "l", 2)]])
    names = [{"kind": "l", "name": "left"}, {"kind": "r", "name": None}, {"kind": "x", "name": "unknown"}]
    (stage.folder / "names.json").write_text("".join(json.dumps(row) + "\n" for row in names))
    pipeline = stage.pipeline(SOURCE + STATIC)
    found = [
        [(each.expectation, each.rows, each.checked) for report in reports for each in report.violations]
        for reports in (stage.run(pipeline), [stage.run_once(pipeline)])
    ]
    assert found[0] == found[1] == [("has a name", 1, 3), ("is short", 2, 3)]
    assert sorted(table(stage, "select id from named")) == [(1,), (1,), (3,), (3,)]  # both engines have written
    assert table(stage, "select name, n from counted") == [("left", 2)]


UNIQUE = """
  plain:
    files: {path: in, format: json, options: {maxFilesPerTrigger: 1}}
    stream: true
    schema: "id BIGINT, kind STRING, at TIMESTAMP, x BIGINT"
steps:
  timed:
    sql: "select id, at as seen, x from plain"
    watermark: {column: seen, delay: 10 seconds}
  once: {from: readings, deduplicate: {key: [id], within: 1 minute}}
  again: {from: timed, deduplicate: {key: [id], within: 1 minute}}
  minutes: {from: once, window: {column: at, size: 1 minute}, aggregate: {events: count(*)}}
sinks:
  once: {from: once, table: once}
  again: {from: again, table: again}
  minutes: {from: minutes, table: minutes}
"""
# Rows 3 and 4 repeat 1 and 2 across a full minute. The minute of row 5 is final, if nothing delays it, with row 7.
DUPLICATES = [
    reading(1, "a", 55, 1),
    reading(2, "a", 58, 2),
    reading(1, "a", 62, 3),
    reading(2, "a", 63, 4),
    reading(4, "a", 290, 5),
    reading(1, "a", 330, 6),
    reading(3, "a", 331, 7),
]
KEPT = [1, 2, 5, 6, 7]


@pytest.mark.parametrize(
    "cuts",
    [
        pytest.param((2, 7), id="two batches"),
        pytest.param((7,), id="whole", marks=pytest.mark.soak),
        pytest.param((1, 3, 4, 7), id="cut", marks=pytest.mark.soak),
    ],
)
def test_duplicates_are_dropped_by_event_time_in_any_batches(stage: Stage, cuts: tuple[int, ...]) -> None:
    give(stage, [DUPLICATES[start:end] for start, end in zip((0, *cuts), cuts, strict=False)])
    stage.run(stage.pipeline(SOURCE + UNIQUE))
    assert sorted(x for (x,) in table(stage, "select x from once")) == KEPT
    assert sorted(x for (x,) in table(stage, "select x from again")) == KEPT
    found = {start[11:16]: events for start, events in table(stage, "select window_start, events from minutes")}
    assert found == {"12:00": 2, "12:04": 1}


def test_a_batch_drops_the_same_duplicates(stage: Stage) -> None:
    give(stage, [DUPLICATES])
    stage.run_once(stage.pipeline(SOURCE + UNIQUE))
    assert sorted(x for (x,) in table(stage, "select x from once")) == KEPT
    assert sorted(x for (x,) in table(stage, "select x from again")) == KEPT


def test_keys_are_forgotten_when_the_watermark_has_passed_their_period(stage: Stage) -> None:
    old = [reading(number, "a", 0) for number in range(10)]
    give(stage, [old, [reading(100, "a", 1000)], [reading(101, "a", 1001)]])
    stream = stage.spark.readStream.schema("id BIGINT, at TIMESTAMP").option("maxFilesPerTrigger", "1")
    timed = stream.json(str(stage.folder / "in")).withWatermark("at", "10 seconds")
    unique = deduplicate(timed, Deduplication("", ("id",), Duration(60_000)), "at")
    assert unique.schema["at"].metadata == timed.schema["at"].metadata
    writer = unique.writeStream.foreachBatch(lambda batch, _number: batch.write.format("noop").mode("append").save())
    query = writer.option("checkpointLocation", str(stage.folder / "state")).trigger(availableNow=True).start()
    query.awaitTermination(int(WAIT_S))
    assert query.lastProgress is not None
    assert [each.numRowsTotal for each in query.lastProgress.stateOperators] == [2, 2]
