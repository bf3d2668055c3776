"""`changes:` and `lakehouse:` in definitions: what they mean, and what is refused."""

from __future__ import annotations

import pytest

from odradek.pipelines.definition.decorators import Pipeline
from odradek.pipelines.definition.model import Changes, LakehouseTarget, TableTarget
from odradek.pipelines.definition.vocabulary import Duration, LakehouseFormat, SinkMode
from odradek.pipelines.planning.lineage import lineage_of
from odradek.pipelines.planning.loading import define_python
from tests.pipelines.definition.definitions import SOURCE, define, reported_for

DELTA = "lakehouse: {format: delta, path: lake/t"
JARS = "spark: {spark.jars.packages: anything}\n"


def test_changes_of_a_table_and_of_a_view() -> None:
    definition = define(
        SOURCE
        + """
sinks: {t: {from: rigs, table: t, changes: {key: [id], sequence: at, deletes: "id < 0", remember: 7 days}}}
views: {v: {from: rigs, changes: {key: id, sequence: at, history: true}}}
"""
    )
    assert definition.pipeline is not None
    (sink,), (view,) = definition.pipeline.sinks, definition.pipeline.views
    week = Duration(7 * 86_400_000)
    assert sink.target == TableTarget("t", changes=Changes(("id",), "at", "id < 0", remember=week))
    assert sink.mode is SinkMode.APPEND
    assert view.content == Changes(("id",), "at", keeps_history=True)
    assert definition.plan is not None
    details = {each.id: each.detail for each in lineage_of(definition.plan)}
    assert details["sink/t"] == "table t, state of id by at"
    assert details["view/v"] == "history of id by at"


def test_python_declares_the_same() -> None:
    made = Pipeline("p")
    made.source("rigs", topic="rigs", schema="id BIGINT, at TIMESTAMP")
    made.view("v", from_="rigs", changes={"key": ["id"], "sequence": "at", "history": True})
    definition = define_python(made, {})
    assert definition.pipeline is not None
    assert definition.pipeline.views[0].content == Changes(("id",), "at", keeps_history=True)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("table: t, changes: {sequence: at}", "changes of sink 'o' has no key"),
        ("table: t, changes: {key: id}", "changes of sink 'o' has no sequence"),
        (
            "table: t, changes: {keys: id, sequence: at}",
            "unknown key 'keys' of changes of sink 'o'",
        ),
        ("table: t, changes: {key: id, sequence: id}", "has 'id' in its key"),
        ("table: t, changes: {key: id, sequence: at, deletes: op = 1}", "there is no column 'op' in sink 'o'"),
        (
            "table: t, changes: {key: id, sequence: at, deletes: rand() < 1}",
            "sink 'o' uses rand, which the rows do not",
        ),
        ("table: t, key: id, changes: {key: id, sequence: at}", "sink 'o' has key, and its changes decide"),
        ("table: t, changes: {key: id, sequence: at, history: true, remember: 1 day}", "which keeps deletions"),
        ("topic: t, changes: {key: id, sequence: at}", "changes of sink 'o' applies to table, not to topic"),
        (DELTA + "}, changes: {key: id, sequence: at}", "changes of sink 'o' applies to table, not to lakehouse"),
        (DELTA + ", key: nope}", "sink 'o' names the column 'nope', which 'rigs' has not"),
        (DELTA + ", partition_by: nope}", "sink 'o' names the column 'nope', which 'rigs' has not"),
        ("lakehouse: {path: t}", "lakehouse of sink 'o' has no format"),
        ("lakehouse: {format: delta}", "lakehouse of sink 'o' has none of table, path"),
        ("lakehouse: {format: iceberg, path: t}", "Iceberg tables are found by their name in a catalog"),
        ("lakehouse: {format: iceberg, table: lake.db.t}", "the catalog 'lake' of sink 'o' is not declared"),
        (DELTA + "}, mode: append", "mode of sink 'o' applies to topic"),
    ],
)
def test_what_is_refused(text: str, said: str) -> None:
    found = reported_for(JARS + f"sinks: {{o: {{from: rigs, {text}}}}}")
    assert [line for line in found if said in line], found


def test_lakehouse_tables() -> None:
    definition = define(
        SOURCE
        + JARS
        + f"""
sinks:
  a: {{from: rigs, {DELTA}, partition_by: [id]}}}}
  m: {{from: rigs, lakehouse: {{format: delta, table: db.m, key: [id]}}}}
"""
    )
    assert definition.pipeline is not None, definition.problems
    appended, merged = definition.pipeline.sinks
    assert appended.target == LakehouseTarget(LakehouseFormat.DELTA, path="lake/t", partition_by=("id",))
    assert merged.target == LakehouseTarget(LakehouseFormat.DELTA, table="db.m", key=("id",))
