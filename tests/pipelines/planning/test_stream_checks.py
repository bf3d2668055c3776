"""Definitions that would mean something else by batch, sink or engine are refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from odradek.pipelines.definition.graph import build_graph
from odradek.pipelines.definition.operations import PythonFunction
from odradek.pipelines.definition.places import Problems
from odradek.pipelines.definition.vocabulary import Engine
from odradek.pipelines.planning.end_checks import check_ends
from odradek.pipelines.planning.streams import Streams
from tests.pipelines.definition.definitions import define, reported_for
from tests.pipelines.planning.test_query_checks import HEAD, errors

TABLE = "warehouse: sqlite:///w.db\nsinks: {o: {from: s, table: o, key: [id], mode: upsert}}\n"
TOPIC = "sinks: {o: {from: s, topic: o, mode: update}}\n"
COUNTS = "select id, count(*) n from a group by id"


@pytest.mark.parametrize("call", ["rand()", "uuid()", "monotonically_increasing_id()", "spark_partition_id()"])
def test_a_value_that_differs_between_replays_is_refused(call: str) -> None:
    assert [
        line for line in errors(f"select id, {call} r from a") if "differs between batches, sinks and replays" in line
    ]
    assert errors("select id, 'rand()' r, a.rand from a  -- uuid()".replace(", a.rand", "")) == []


@pytest.mark.parametrize(
    ("call", "is_reported"),
    [
        ("first(x)", True),
        ("any_value(x)", True),
        ("collect_list(x)", True),
        ("sort_array(collect_list(x))", False),
        ("size( array_agg(x))", False),
        ("min_by(x, at)", False),
    ],
)
def test_an_aggregate_that_depends_on_the_arrival_is_a_warning(call: str, is_reported: bool) -> None:
    lines = reported_for(f'steps: {{s: {{sql: "select id, {call} v from a group by id"}}}}\n' + TOPIC, head=HEAD)
    found = [line for line in lines if "depends on the order in which the records" in line]
    assert [line.startswith("warning: step 's' uses") for line in found] == [True] * is_reported, lines


def test_the_clock_is_a_warning() -> None:
    lines = reported_for(
        'steps: {s: {sql: "select id, now() t, current_date d, unix_timestamp(at) u from a"}}\n' + TOPIC, head=HEAD
    )
    assert len([line for line in lines if line.startswith("warning: step 's' reads the clock")]) == 2


@pytest.mark.parametrize(
    ("sql", "is_refused"),
    [
        (COUNTS, False),
        (f"{COUNTS} having count(*) = 1", True),
        (f"{COUNTS} having id > 3", False),
        (f"select * from ({COUNTS}) c where n < 5", True),
        ("select id, count(*) n from a where x > 1 group by id", False),
        ("select id, struct(avg(x) as mean, count(*) as n) as s from a group by id having s.mean > 3", True),
        ("select id, struct(id as n) as s, count(*) n from a group by id having s.n > 0", False),
        ("select id, count(*) n from (select *, struct(x as n) s from a) v group by id, s having s.n > 0", False),
        ("select id, sum(x) as x from a group by id, x having x > 3", True),
        ("select id, sum(x) as y from a group by id having a.id > 3", False),
    ],
)
def test_a_table_keeps_no_row_of_a_group_that_was_filtered_out_later(sql: str, is_refused: bool) -> None:
    found = [line for line in errors(sql, TABLE) if "which changes, and 'o' keeps the last row" in line]
    assert bool(found) is is_refused, errors(sql, TABLE)
    assert errors(sql, TOPIC) == []


@pytest.mark.parametrize(
    ("step", "is_refused"),
    [
        ("s: {sql: select * from c where n > 1}", True),
        ("s: {sql: select * from c where id > 1}", False),
        ("s: {sql: select * from c, expect: {few: {check: n < 9, otherwise: drop}}}", True),
        ("s: {sql: select * from c, expect: {few: n < 9}}", False),
        ("s: {sql: 'select id, struct(n, id) as v from c', expect: {few: {check: v.n < 9, otherwise: drop}}}", True),
        ("s: {sql: 'select id, struct(n) as v from c', expect: {few: {check: v.n < 9, otherwise: quarantine}}}", True),
        ("s: {sql: 'select id, n from c', expect: {few: {check: c.n < 9, otherwise: drop}}}", True),
        (
            "s: {sql: 'select id, struct(id as n) as v, n from c', expect: {few: {check: v.n < 9, otherwise: drop}}}",
            False,
        ),
        ("s: {from: c, join: {table: levels, on: [n], how: semi}}", True),
        ("s: {from: c, join: {table: levels, on: [n], how: left}}", False),
        ("s: {from: c, join: {table: t, on: [id], how: anti}}", False),
        ("s: {sql: 'select c.id, c.n from c join levels l on c.n = l.n'}", True),
        ("s: {sql: 'select c.id, n from c join levels using (n)'}", True),
        ("s: {sql: 'select c.id, c.n from c left join levels l on c.n = l.n'}", False),
        ("s: {sql: 'select c.id, c.n from c join t using (id)'}", False),
        ("s: {sql: 'select id, n from c where n in (select n from levels)'}", True),
        ("s: {sql: 'select id, n from c where exists (select 1 from levels l where l.n = c.n)'}", True),
        ("s: {sql: 'select id, n from c where exists (select 1 from t where t.id = c.id)'}", False),
        ("s: {sql: 'select id, e from c lateral view explode(sequence(1, 3 - n)) as e'}", True),
        ("s: {sql: 'select id, explode(sequence(1, 3 - n)) as e from c'}", True),
        ("s: {sql: 'select id, explode_outer(sequence(1, 3 - n)) as e from c'}", False),
        ("d: {sql: 'select id as k, n as id from c'}, s: {sql: 'select k as id, id as n from d where id < 3'}", True),
        ("d: {sql: 'select id as k, n as id from c'}, s: {sql: 'select k as id, id as n from d where k < 3'}", False),
        ("s: {sql: 'with d as (select id, n as m from c) select id, m from d where m > 1'}", True),
    ],
)
def test_filters_behind_an_aggregation(step: str, is_refused: bool) -> None:
    head = HEAD + "  levels: {files: {path: l.csv, format: csv}, schema: n BIGINT}\n"
    lines = reported_for(f"steps: {{c: {{sql: '{COUNTS}'}}, {step}}}\n{TABLE}", head=head)
    assert bool([line for line in lines if "filters groups by" in line and "which changes" in line]) is is_refused, (
        lines
    )
    assert is_refused or not [line for line in lines if line.startswith("error")], lines


@pytest.mark.parametrize(("removes_rows", "is_refused"), [(True, True), (False, False)])
def test_a_function_behind_an_aggregation_removes_no_groups(removes_rows: bool, is_refused: bool) -> None:
    step = "s: {from: [c], python: 'own:some', schema: 'id BIGINT, n BIGINT'}"
    found = analysed_errors(f"{{c: {{sql: '{COUNTS}'}}, {step}}}", keeps_state=False, removes_rows=removes_rows)
    assert ["a row that its function removes" in line for line in found] == [True] * is_refused, found


@pytest.mark.parametrize(("removes_groups", "is_refused"), [(True, True), (False, False)])
def test_a_function_removes_no_groups_of_its_own(removes_groups: bool, is_refused: bool) -> None:
    """It may remove records before it groups them."""
    step = "{s: {from: [a], python: 'own:hot', schema: 'id BIGINT, mean DOUBLE'}}"
    flags = {"keeps_state": True, "updates_rows": True, "removes_rows": True}
    found = analysed_errors(step, **flags, removes_groups=removes_groups)
    assert ["a row that its function removes" in line for line in found] == [True] * is_refused, found


def analysed_errors(steps: str, **flags: Any) -> list[str]:
    """The problems of a table behind a Python step of whose plan Spark has found this."""
    pipeline = define(f"{HEAD}steps: {steps}\n{TABLE}").pipeline
    assert pipeline is not None
    function = pipeline.steps[-1].operation
    assert isinstance(function, PythonFunction)
    known = replace(pipeline.steps[-1], operation=replace(function, **flags))
    analysed = replace(pipeline, steps=(*pipeline.steps[:-1], known))
    graph, problems = build_graph(analysed), Problems()
    check_ends(analysed, graph, Streams.of(analysed, graph), problems)
    return [str(each) for each in problems]


@pytest.mark.parametrize(
    ("steps", "end", "what"),
    [
        ("s: {from: a, by: [id], aggregate: {n: count(distinct x)}}", "", "step 's'"),
        ("s: {sql: 'select id, sum(distinct x) as n from a group by id'}", "", "step 's'"),
        ("s: {sql: 'select id, count(*) n from a group by id having count(distinct x) > 1'}", "", "step 's'"),
        ("s: {sql: select * from a}", "views: {v: {from: s, by: [id], aggregate: {n: sum(distinct x)}}}\n", "view 'v'"),
        ("s: {sql: 'select a.id, n from a join (select id, count(distinct name) n from t group by id) q using (id)'}",
         "", None),
        ("s: {sql: 'select id, size(collect_set(x)) as n from a group by id'}", "", None),
    ],
)  # fmt: skip
def test_distinct_values_of_a_stream_are_not_aggregated(steps: str, end: str, what: str | None) -> None:
    sink = "sinks: {o: {from: s, topic: o, mode: update}}\n"
    lines = reported_for(f"warehouse: sqlite:///w.db\nsteps: {{{steps}}}\n{sink}{end}", head=HEAD)
    found = [line for line in lines if "aggregates distinct values of a stream" in line]
    assert [line.startswith(f"error: {what}") or f"'n' of {what}" in line for line in found] == [True] * bool(what), (
        lines
    )
