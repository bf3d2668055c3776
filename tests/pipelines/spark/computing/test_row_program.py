"""A row program writes the records and rows of all ends of a flow in one pass, and counts them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from odradek.pipelines.definition.places import Problems
from odradek.pipelines.planning.plan import CANNOT_COMPUTE
from odradek.pipelines.planning.rules import checked_plan
from odradek.pipelines.spark.computing.row_program import RowProgram, row_program
from odradek.pipelines.spark.frames import ORIGIN
from odradek.pipelines.spark.reading.record_files import RECORD_DDL
from tests.pipelines.definition.definitions import sound

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from odradek.pipelines.definition.model import Pipeline
    from odradek.pipelines.planning.plan import Flow, Plan

pytestmark = pytest.mark.spark

SOURCES = """
pipeline: p
bootstrap_servers: nowhere:1
dead_letters: letters
warehouse: sqlite:///w.db
sources:
  readings:
    topic: in
    schema: "id BIGINT, n BIGINT, name STRING, at TIMESTAMP, list ARRAY<BIGINT>"
    columns: {twice: n * 2, source: "concat(_topic, _partition)"}
"""
STEPS = {
    "chain": """
steps:
  known:
    sql: select id, n, upper(name) as name, twice from readings where n is not null
    expect:
      known: {check: id <> 41, otherwise: quarantine}
      small: {check: n < 42, otherwise: drop}
      named: {check: name <> '', otherwise: warn}
  few: {sql: "select k.id, k.n + 1 as more, name from known k where k.n > 1"}
sinks:
  known: {from: known, topic: out, key: id, headers: {n: n}}
  few: {from: few, topic: few, value: [id, more]}
  stored: {from: few, table: few}
""",
    "several rows": """
steps:
  each:
    sql: select id, name, item from readings lateral view explode(list) t as item
    expect: {positive: {check: item > 0, otherwise: quarantine}}
sinks: {each: {from: each, topic: out, key: id}}
""",
}
VALUES: list[Any] = [
    {"id": 1, "n": 2, "name": "a", "at": "2026-01-31T23:59:01Z", "list": [1, -2, 3]},
    {"id": 41, "n": 50, "name": ""},
    {"id": 41, "n": 3, "name": "it's", "list": []},
    {"id": 5, "n": 45},
    {"id": 6, "list": [0]},
    {"id": "text"},
    "not JSON",
    None,
]
LETTERS = [json.dumps(each) for each in VALUES[-3:-1]]


def records(spark: SparkSession) -> DataFrame:
    values = [None if each is None else json.dumps(each).encode() for each in VALUES]
    rows = [(b"key", value, "in", 0, offset, None, 0, None) for offset, value in enumerate(values)]
    return spark.createDataFrame(rows, RECORD_DDL).coalesce(1)


def plan_of(pipeline: Pipeline) -> Plan:
    problems = Problems()
    plan = checked_plan(pipeline, problems)
    assert not problems.errors, str(problems.errors[0])
    return plan


def programs(pipeline: Pipeline, raw: DataFrame) -> list[RowProgram]:
    plan = plan_of(pipeline)
    assert all(each.is_row_program for each in plan.flows)
    return [row_program(plan, each, raw) for each in plan.flows]


def records_of(program: RowProgram) -> dict[str, list[str]]:
    """The values by topic."""
    found: dict[str, list[str]] = {}
    for _producer, frame in program.records_in(program.observed()):
        for row in frame.collect():
            found.setdefault(row.topic, []).append(row.value.decode())
    return {topic: sorted(values, key=repr) for topic, values in found.items()}


def counted(made: RowProgram) -> dict[str, int]:
    return made.frame.selectExpr(*(f"{each.aggregate} as `{each.name}`" for each in made.counts)).collect()[0].asDict()


def test_all_ends_of_a_flow_are_written_and_counted_in_one_pass(spark: SparkSession) -> None:
    (program,) = programs(sound(SOURCES + STEPS["chain"]), records(spark))
    assert (program.is_direct, program.can_fail) == (False, False)
    assert records_of(program) == {
        "few": ['{"id":1,"more":3}'],
        "out": ['{"id":1,"n":2,"name":"A","twice":4}'],
        "letters": sorted([*LETTERS, *map(json.dumps, VALUES[1:3])], key=repr),
    }
    frame = program.observed()
    found = {name: program.rows(frame, name).drop(ORIGIN).collect() for name in program.tables}
    assert found == {"few": [(1, 3, "A")]}
    counts = {name: rows for name, rows in counted(program).items() if rows}
    assert counts == {
        "refused readings": 2,
        "checked known": 4,
        "unmet known: known": 2,
        "unmet known: small": 2,
        "unmet known: named": 2,  # '' and null
        "written known": 1,
        "written few": 1,
    }


@pytest.mark.more
def test_a_record_has_several_rows(spark: SparkSession) -> None:
    (program,) = programs(sound(SOURCES + STEPS["several rows"]), records(spark))
    out = ['{"id":1,"name":"a","item":1}', '{"id":1,"name":"a","item":3}']
    letters = sorted([*LETTERS, json.dumps(VALUES[0]), json.dumps(VALUES[4])], key=repr)
    assert records_of(program) == {"out": out, "letters": letters}


def letters_of(program: RowProgram) -> list[tuple[str, str, int]]:
    """The step, the reason and the id of each dead letter."""
    ((_producer, frame),) = program.records_in(program.observed())
    found = [row for row in frame.collect() if row.topic == "letters"]
    return sorted(
        (row.headers[2].value.decode(), row.headers[0].value.decode().partition(":")[0], json.loads(row.value)["id"])
        for row in found
    )


def test_values_that_cannot_be_computed_are_dead_letters(spark: SparkSession) -> None:
    pipeline = sound(
        """
pipeline: p
bootstrap_servers: nowhere:1
dead_letters: letters
sources: {readings: {topic: in, schema: "id BIGINT, n BIGINT, name STRING", columns: {part: "split(name, '-')[1]"}}}
steps: {shares: {sql: "select id, 100 / n as share, part from readings where n < 10"}}
sinks: {out: {from: shares, topic: out, key: cast(part as int), value: [id, share]}}
"""
    )
    values = [(1, 5, "a-1"), (2, 0, "a-2"), (3, 5, "a-b"), (4, 5, "a"), (5, 20, "a-5")]
    given = [json.dumps({"id": key, "n": n, "name": name}).encode() for key, n, name in values]
    rows = [(None, value, "in", 0, offset, None, 0, None) for offset, value in enumerate(given)]
    (program,) = programs(pipeline, spark.createDataFrame(rows, RECORD_DDL).coalesce(1))
    assert letters_of(program) == [
        ("out", CANNOT_COMPUTE, 3),
        ("readings", CANNOT_COMPUTE, 4),
        ("shares", CANNOT_COMPUTE, 2),
    ]
    ((_producer, frame),) = program.records_in(program.observed())
    assert [row.value for row in frame.collect() if row.topic == "out"] == [b'{"id":1,"share":20.0}']
    assert counted(program) == {
        "refused readings": 1,
        f"unmet shares: {CANNOT_COMPUTE}": 1,
        f"unmet end out: {CANNOT_COMPUTE}": 1,
        "written out": 1,
    }


def test_a_record_without_event_time_is_a_dead_letter(spark: SparkSession) -> None:
    pipeline = sound(
        """
pipeline: p
bootstrap_servers: nowhere:1
dead_letters: letters
sources: {readings: {topic: in, schema: "id BIGINT, at TIMESTAMP", watermark: {column: at, delay: 1 minute}}}
sinks: {out: {from: readings, topic: out, key: id}}
"""
    )
    given = [b'{"id": 1, "at": "2026-01-31T23:59:01Z"}', b'{"id": 2}']
    rows = [(None, value, "in", 0, offset, None, 0, None) for offset, value in enumerate(given)]
    (program,) = programs(pipeline, spark.createDataFrame(rows, RECORD_DDL))
    assert letters_of(program) == [("readings", "no event time", 2)]


@pytest.mark.more
def test_rows_that_are_not_of_a_topic_are_checked_and_written(spark: SparkSession) -> None:
    pipeline = sound(
        SOURCES
        + """
steps:
  totals:
    from: readings
    aggregate: {n: sum(n)}
    by: [id]
    expect: {some: {check: n > 2, otherwise: quarantine}}
  more: {sql: "select id, n + 1 as n from totals"}
sinks: {out: {from: more, topic: out, mode: update, key: id}}
"""
    )
    plan = plan_of(pipeline)
    flow: Flow = next(each for each in plan.flows if each.root == "totals")
    rows = spark.sql("select * from values (1, 2), (2, 3), (3, null) as t(id, n)")
    program = row_program(plan, flow, rows)
    found = sorted(
        (row.topic, row.value) for _, frame in program.records_in(program.observed()) for row in frame.collect()
    )
    assert found == [("letters", b'{"id":1,"n":2}'), ("letters", b'{"id":3}'), ("out", b'{"id":2,"n":4}')]
