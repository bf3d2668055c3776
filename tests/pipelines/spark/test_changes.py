"""Change data from topics to tables and views: late changes, deletions and tombstones, and tables that are rebuilt."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import sqlalchemy as sa

from odradek.pipelines.planning.rules import plan_again
from odradek.pipelines.spark.rebuilding import Rebuilding, changing
from odradek.pipelines.spark.resuming import CheckpointRefused, resuming
from odradek.pipelines.spark.writing.topics import prepare_topics
from tests.pipelines.spark.stage import renamed

if TYPE_CHECKING:
    from odradek.pipelines.definition.model import Pipeline
    from tests.pipelines.spark.stage import Stage

pytestmark = pytest.mark.spark

DEBEZIUM = """
    warehouse: sqlite:///w.db
    sources:
      customers:
        topic: "@in"
        schema: |
          op STRING, ts_ms BIGINT,
          before STRUCT<id: BIGINT, name: STRING>,
          after STRUCT<id: BIGINT, name: STRING>
    steps:
      changes:
        sql: |
          select coalesce(after.id, before.id) as id, after.name as name, ts_ms, op = 'd' as is_deleted
          from customers
    sinks:
      customers: {from: changes, table: customers, changes: {key: [id], sequence: ts_ms, deletes: is_deleted}}
    views:
      customer_history:
        from: changes
        changes: {key: [id], sequence: ts_ms, deletes: is_deleted, history: true}
"""
FIRST = [("c", 1, "Ada", 10), ("c", 2, "Ben", 11), ("u", 1, "Ada L", 20), ("d", 2, None, 15)]
LATE = [("u", 2, "late", 12), ("c", 1, "first", 5), ("u", 1, "between", 15), ("d", 3, None, 30), ("c", 3, "late", 29)]
CURRENT = [(1, "Ada L", 20)]
HISTORY = [
    (1, "first", 5, 10, False),
    (1, "Ada", 10, 15, False),
    (1, "between", 15, 20, False),
    (1, "Ada L", 20, None, True),
    (2, "Ben", 11, 12, False),
    (2, "late", 12, 15, False),
    (3, "late", 29, 30, False),
]


def envelope(change: tuple[str, int, str | None, int]) -> dict[str, Any]:
    """A change as Debezium writes it."""
    op, key, name, at = change
    row = {"id": key, "name": name}
    return {"op": op, "ts_ms": at, "before": row if op == "d" else None, "after": None if op == "d" else row}


def run(stage: Stage, pipeline: Pipeline) -> None:
    with resuming(plan_again(pipeline), prepare_topics(pipeline), lambda _text: None) as starts:
        stage.run(pipeline, starts=starts)


def query(stage: Stage, text: str, file: str = "w.db") -> list[tuple[Any, ...]]:
    with changing(f"sqlite:///{stage.folder / file}") as connection:
        return [tuple(row) for row in connection.execute(sa.text(text))]


def contents(stage: Stage, file: str = "w.db") -> tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]:
    history = "select id, name, valid_from, valid_to, is_current from customer_history order by id, valid_from"
    current = query(stage, "select id, name, ts_ms from customers order by id", file)
    return current, [(*row[:-1], bool(row[-1])) for row in query(stage, history, file)]


def test_changes_of_debezium_are_a_table_and_its_history(stage: Stage) -> None:
    stage.create("in", 1)
    pipeline = stage.pipeline(DEBEZIUM)
    for changes in (FIRST, LATE):
        stage.produce("in", [*map(envelope, changes), None])  # Debezium writes a tombstone after a deletion
        run(stage, pipeline)
    assert contents(stage) == (CURRENT, HISTORY)

    stage.run_once(renamed(pipeline, warehouse="sqlite:///batch.db"))
    assert contents(stage, "batch.db") == (CURRENT, HISTORY)

    query(stage, "delete from customers returning 1")
    query(stage, "delete from customer_history where id = 2 returning 1")
    query(stage, "delete from odradek_deletions_customers returning 1")
    cluster = prepare_topics(pipeline)
    plan = plan_again(pipeline)
    rebuilding = Rebuilding(stage.spark, plan, cluster, lambda _text: None)
    assert {each.name: rebuilding.rebuild(each) for each in plan.ends} == {"customers": 1, "customer_history": 7}
    assert contents(stage) == (CURRENT, HISTORY)
    stage.produce("in", [envelope(("u", 2, "too late", 14))])
    run(stage, pipeline)
    assert contents(stage)[0] == CURRENT

    other = stage.pipeline(
        DEBEZIUM.replace("sequence: ts_ms, deletes: is_deleted}}", "sequence: ts_ms, history: true}}")
    )
    with (
        pytest.raises(CheckpointRefused, match="changes of sink customers: current rows by id"),
        resuming(plan_again(other), cluster, lambda _text: None),
    ):
        pass
    changed = plan_again(other)
    Rebuilding(stage.spark, changed, cluster, lambda _text: None).rebuild(changed.ends[0])
    with resuming(plan_again(other), cluster, lambda _text: None):
        assert query(stage, "select count(*) from customers where is_current") == [(3,)]


TOMBSTONES = """
    sources: {rows: {topic: "@in", schema: "name STRING", tombstones: rows}}
    steps:
      named: {sql: "select cast(_key as string) as id, name, _offset as at, _value is null as is_deleted from rows"}
    views: {names: {from: named, changes: {key: [id], sequence: at, deletes: is_deleted}}}
    sinks: {raw: {from: rows, table: raw, changes: {key: [_key], sequence: _offset, deletes: _value is null}}}
"""


@pytest.mark.more
def test_a_tombstone_deletes_the_row_of_its_key(stage: Stage) -> None:
    stage.create("in", 1)
    stage.produce("in", [{"name": "x"}, None], key="a")
    stage.produce("in", [{"name": "y"}], key="b")
    stage.run(stage.pipeline(TOMBSTONES))
    assert query(stage, "select id, name, at from names", "p.db") == [("b", "y", 2)]
    assert query(stage, "select name, _key, _offset from raw", "p.db") == [("y", b"b", 2)]
