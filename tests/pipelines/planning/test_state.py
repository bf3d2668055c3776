"""Which steps keep state, and of which kind."""

from __future__ import annotations

import dataclasses

import pytest

from odradek.pipelines.definition.graph import build_graph
from odradek.pipelines.definition.model import Step
from odradek.pipelines.definition.operations import PythonFunction, Sql
from odradek.pipelines.definition.references import PythonReference
from odradek.pipelines.planning.state import State, state_of
from odradek.pipelines.planning.streams import Streams
from tests.pipelines.definition.definitions import sound

STREAMS = {"a", "b", "s"}
NOTHING, GROUPS, JOIN = State.NONE, State.AGGREGATION, State.STREAM_JOIN


@pytest.mark.parametrize(
    ("sql", "state"),
    [
        ("select id from a where id > 1", NOTHING),
        ("select id from a union all select id from a", NOTHING),
        ("select id from a union all select id from b", NOTHING),
        ("select a.id from a join t using (id)", NOTHING),
        ("select id from a where id in (select id from t)", NOTHING),
        ("select a.id from a join (select id, max(x) m from t group by id) u using (id)", NOTHING),
        ("select id from a lateral view explode(xs) as x", NOTHING),
        ("select id, count(*) from a group by id", GROUPS),
        ("select distinct id from a", GROUPS),
        ("select id from a union select id from b", GROUPS),
        ("select max(id) from a", GROUPS),
        ("select regr_slope(x, y) from a", GROUPS),
        ("select any(x > 1) from a", GROUPS),
        ("select not any(x > 1) as cold from a", GROUPS),
        ("select kll_sketch_agg_double(x) from a", GROUPS),
        ("select id from a where name like any ('a%', 'b%')", NOTHING),
        ("with c as (select id, count(*) n from a group by id) select * from c", GROUPS),
        ("select * from a join b using (id)", JOIN),
        ("select * from a x join a y on x.id = y.id", JOIN),
        ("select * from a, b where a.id = b.id", JOIN),
        ("select * from A join B using (id)", JOIN),
        ("with c as (select * from a) select * from c x join c y using (id)", JOIN),
        ("select * from (select * from a union all select * from b) u join t using (id)", NOTHING),
        ("select * from (select * from a union all select * from t) u join b using (id)", JOIN),
        ("select * from (a join b on a.id = b.id)", JOIN),
        ("select id from a where exists (select 1 from b where a.id = b.id)", JOIN),
        ("select id from a where id in (select id from a)", JOIN),
        ("select a.id, count(*) from a join b using (id) group by a.id", GROUPS | JOIN),
    ],
)
def test_state_of_a_query(sql: str, state: State) -> None:
    assert state_of(Step("s", Sql(sql)), STREAMS) == state


def test_a_step_of_static_tables_keeps_no_state() -> None:
    assert state_of(Step("totals", Sql("select id, count(*) n from t group by id")), STREAMS) is NOTHING


def test_a_function_keeps_state_if_its_plan_does() -> None:
    function = PythonFunction(("a",), PythonReference("steps", "counted"))
    assert state_of(Step("s", function), STREAMS) is NOTHING
    assert state_of(Step("s", dataclasses.replace(function, keeps_state=True)), STREAMS) == State.FUNCTION
    counting = dataclasses.replace(function, keeps_state=True, updates_rows=True)
    assert state_of(Step("s", counting), STREAMS) == State.FUNCTION | GROUPS


def test_a_watermark_is_kept_by_another_name() -> None:
    pipeline = sound("""
        pipeline: p
        sources: {a: {topic: a, schema: "id BIGINT, at TIMESTAMP", watermark: {column: at, delay: 1 minute}}}
        steps: {s: {sql: "select id, at as seen from a"}, t: {sql: "select id from s"}}
        sinks: {o: {from: s, console: true}, p: {from: t, console: true}}
        """)
    streams = Streams.of(pipeline, build_graph(pipeline))
    assert streams.watermarks == {"a": {"at"}, "s": {"seen"}, "t": frozenset()}
