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
        ("collect_set(x)", True),
        ("sort_array(\\n collect_set(x))", False),
        ("array_contains(collect_set(x), 1)", False),
        ("min_by(x, at)", False),
    ],
)
def test_an_aggregate_that_depends_on_the_arrival_is_a_warning(call: str, is_reported: bool) -> None:
    lines = reported_for(f'steps: {{s: {{sql: "select id, {call} v from a group by id"}}}}\n' + TOPIC, head=HEAD)
    found = [line for line in lines if "depends on the order in which the records" in line]
    assert [line.startswith("warning: step 's' uses") for line in found] == [True] * is_reported, lines


@pytest.mark.parametrize("call", ["percentile_approx(x, 0.5)", "histogram_numeric(x, 5)", "kll_sketch_agg_double(x)"])
def test_an_approximate_aggregate_that_depends_on_the_batches_is_a_warning(call: str) -> None:
    for each, is_reported in ((call, True), ("percentile(x, 0.5)", False), ("approx_count_distinct(x)", False)):
        lines = reported_for(f'steps: {{s: {{sql: "select id, {each} v from a group by id"}}}}\n' + TOPIC, head=HEAD)
        found = [line for line in lines if "is approximate, and depends on the batches" in line]
        assert [line.startswith("warning: step 's' uses") for line in found] == [True] * is_reported, lines


@pytest.mark.parametrize(
    ("arguments", "is_reported"),
    [
        ("b, k", True),
        ("b, concat(k, k), 'CBC'", True),
        ("b, k, 'GCM', 'DEFAULT', ''", True),
        ("b, k, 'ecb'", False),
        ("b, k, 'GCM', 'DEFAULT', unhex(v)", False),
    ],
)
def test_encryption_with_a_random_vector_is_a_warning(arguments: str, is_reported: bool) -> None:
    lines = reported_for(f'steps: {{s: {{sql: "select id, aes_encrypt({arguments}) e from a"}}}}\n' + TOPIC, head=HEAD)
    found = [line for line in lines if "aes_encrypt() without an initialization vector" in line]
    assert [line.startswith("warning: step 's' uses") for line in found] == [True] * is_reported, lines


def test_the_clock_is_a_warning() -> None:
    lines = reported_for(
        'steps: {s: {sql: "select id, now() t, current_date d, unix_timestamp(at) u from a"}}\n' + TOPIC, head=HEAD
    )
    assert len([line for line in lines if line.startswith("warning: step 's' reads the clock")]) == 2


@pytest.mark.parametrize("call", ["timestamp 'now'", "DATE'today'", "cast('tomorrow' as date)", "localtime()"])
def test_a_literal_of_the_present_reads_the_clock(call: str) -> None:
    lines = reported_for(f'steps: {{s: {{sql: "select id, {call} t from a"}}}}\n' + TOPIC, head=HEAD)
    assert len([line for line in lines if line.startswith("warning: step 's' reads the clock")]) == 1, lines
    said = f"steps: {{s: {{sql: \"select id, 'now' t from a where x > date '2026-01-01'\"}}}}\n{TOPIC}"
    assert not [line for line in reported_for(said, head=HEAD) if "reads the clock" in line]


@pytest.mark.parametrize("call", ["rand()", "`rand`()", "builtin.rand()", "system.builtin.uuid()"])
def test_a_random_function_is_refused_by_any_of_its_names(call: str) -> None:
    lines = reported_for(f'steps: {{s: {{sql: "select id, {call} r from a"}}}}\n' + TOPIC, head=HEAD)
    assert len([line for line in lines if "whose value differs between batches, sinks and replays" in line]) == 1, lines


@pytest.mark.parametrize(
    ("sql", "is_refused"),
    [
        (COUNTS, False),
        (f"{COUNTS} having count(*) = 1", True),
        (f"{COUNTS} having id > 3", False),
        (f"select * from ({COUNTS}) c where n < 5", True),
        (f"with g as ({COUNTS}) select * from (g) where n > 1", True),
        (f"with g as ({COUNTS}) select * from ((g) join t on g.id = t.id) where id > 1", False),
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


GROUPS = "s: {from: a, by: [id], aggregate: {total: sum(x), last: max(at), n: count(*)}}"
PAIRS = "s: {from: a, by: [id, x], aggregate: {total: sum(x), n: count(*)}}"
MINUTES = "s: {from: a, by: [id], window: {column: at, size: 1 minute}, aggregate: {total: sum(x)}}"
VISITS = "s: {from: a, by: [id], window: {column: at, gap: 1 minute}, aggregate: {total: sum(x)}}"
DAYS = "s: {sql: \"select date(window.start) as day, count(*) n from a group by window(at, '%s')\"}"
SIDES = (
    "c: {sql: 'select id, count(*) n from a group by id'}, d: {sql: 'select id, count(*) n from b group by id'}, "
    "s: {sql: \"select 'c' as side, id, n from c union all select 'd', id, n from d\"}"
)


@pytest.mark.parametrize(
    ("step", "end", "said"),
    [
        (GROUPS, "key: [id]", None),
        (GROUPS, "key: [id], order_by: total", "ordered by 'total', which may fall"),
        (GROUPS, "key: [id], order_by: last", None),
        (GROUPS, "key: [id], order_by: n", None),
        (GROUPS, "key: [id, n]", "has 'n', which changes"),
        (PAIRS, "key: [id]", "nothing in its key tells x apart"),
        (PAIRS, "key: [id], order_by: total", "ordered by 'total', which may fall"),
        (PAIRS, "key: [id], order_by: n", "nothing in its key tells x apart"),
        (PAIRS, "key: [id, x], order_by: n", None),
        (MINUTES, "key: [id]", "nothing in its key tells window apart"),
        (MINUTES, "key: [id, window_end]", None),
        (MINUTES, "key: [id], order_by: window_start", None),
        (VISITS, "key: [id]", "nothing in its key tells window apart"),
        (VISITS, "key: [id], order_by: total", None),  # sessions are final
        (SIDES, "key: [id]", "tells the queries of the UNION apart"),
        (SIDES, "key: [side, id]", None),
        ("s: {sql: 'select distinct id, x from a'}", "key: [id]", "nothing in its key tells x apart"),
        ("s: {sql: 'select distinct id, x from a'}", "key: [id], order_by: x", None),
        ("s: {sql: 'select x as id, count(*) n from a group by 1'}", "key: [id]", None),
        ("s: {sql: 'select id, count(*) n from a group by id, x'}", "key: [id]", "nothing in its key tells x apart"),
        ("s: {sql: 'select upper(id) as id, count(*) n from a group by id'}", "key: [id]", "tells id apart"),
        ("s: {sql: 'select concat(id, x) as pk, count(*) n from a group by id, x'}", "key: [pk]", None),
        ("s: {sql: 'select 1 as one, count(*) n from a'}", "key: [one]", None),
        (DAYS % "1 day", "key: [day]", None),
        (DAYS % "1 hour", "key: [day]", "tells window apart"),
        (
            f"d: {MINUTES[3:].replace('1 minute', '2 days')}, s: {{sql: 'select *, date(window_end) e from d'}}",
            "key: [id, e]",
            None,
        ),
    ],
)
@pytest.mark.parametrize("end_kind", ["sinks: {o: {from: s, table: o, %s}}", "views: {o: {from: s, %s}}"])
def test_a_key_has_one_group_and_its_order_does_not_fall(step: str, end: str, said: str | None, end_kind: str) -> None:
    lines = reported_for(f"steps: {{{step}}}\nwarehouse: sqlite:///w.db\n{end_kind % end}\n", head=HEAD)
    found = [line for line in lines if line.startswith("error")]
    assert len(found) == (said is not None), found
    assert said is None or said in found[0], found


@pytest.mark.parametrize(
    ("step", "is_refused"),
    [
        ("s: {sql: 'select id, x from a where x > 1 union all select id, -x from a where x < 1'}", False),
        ("s: {sql: 'select a.id, name from a join t using (id)'}", False),
        ("s: {sql: 'select id, x from a where id in (select id from t)'}", False),
        ("s: {sql: 'select a.id, name from a join (select * from t) t using (id)'}", True),
        ("s: {sql: 'with q as (select id, x from a) select id, x from q union all select id, -x from q'}", True),
        ("s: {sql: 'with q as (select 1 as w, id, x from a) select w, id, x from q where x > 1'}", False),
        ("s: {sql: 'select a.id, x, y from a join b on a.id = b.id'}", True),
        ("s: {from: a, deduplicate: {key: [x]}}", False),
        ("p: {from: [a], python: 'own:some', schema: 'id BIGINT'}, s: {sql: 'select id from p'}", False),
        ("p: {from: [a], python: 'own:some', schema: 'id BIGINT'}, s: {from: p, join: {table: t, on: [id]}}", True),
    ],
)
def test_without_order_by_rows_are_in_the_order_of_their_arrival(step: str, is_refused: bool) -> None:
    lines = reported_for(f"steps: {{{step}}}\n{TABLE}", head=HEAD)
    said = "are not in the order of their arrival; add order_by"
    assert bool([line for line in lines if said in line]) is is_refused, lines


def test_within_needs_one_column_of_event_time() -> None:
    joined = "j: {sql: 'select a.id, a.at as one, b.at as other from a join b using (id)'}"
    lines = reported_for(
        f"steps: {{{joined}, s: {{from: j, deduplicate: {{key: [id], within: 1 minute}}}}}}\n"
        "sinks: {o: {from: s, topic: o}}\n",
        head=HEAD,
    )
    assert [line for line in lines if "several columns of event time: one and other" in line], lines


@pytest.mark.parametrize("engine", [Engine.STANDARD, Engine.BATCH])
def test_within_needs_event_time_in_every_engine(engine: Engine) -> None:
    text = "steps: {s: {from: bare, deduplicate: {key: [id], within: 1 minute}}}\nsinks: {o: {from: s, topic: o}}\n"
    assert [line for line in reported_for(text, engine, HEAD) if "but its input has no watermark" in line]
    assert [
        line
        for line in reported_for(text.replace("1 minute", "0 s"), engine, HEAD)
        if "within of step 's' is 0" in line
    ]


def test_a_stream_has_one_watermark() -> None:
    step = "s: {sql: 'select id, at as seen from a', watermark: {column: seen, delay: 1 minute}}"
    lines = reported_for(f"steps: {{{step}}}\nsinks: {{o: {{from: s, topic: o}}}}\n", head=HEAD)
    assert [line for line in lines if "has a watermark, and its input has one already (column 'at')" in line], lines


def test_a_static_table_is_not_written_by_a_stream() -> None:
    lines = reported_for("sinks: {o: {from: t, topic: o}, p: {from: a, topic: p}}\n", head=HEAD)
    assert [line for line in lines if "sink 'o' reads 't', which is not a stream" in line], lines


@pytest.mark.parametrize("sql", ["selec id from a", "select id from aa", "select t.id from t join aa on t.id = aa.id"])
def test_a_wrong_query_is_reported_once(sql: str) -> None:
    steps = f"steps: {{s: {{sql: '{sql}'}}, next: {{sql: 'select id from s'}}}}\n"
    lines = reported_for(steps + "sinks: {o: {from: next, topic: o}, p: {from: a, topic: p}}\n", head=HEAD)
    assert len([line for line in lines if "error" in line]) == 1, lines


@pytest.mark.parametrize(
    ("steps", "end", "what"),
    [
        ("s: {from: a, by: [id], aggregate: {n: count(distinct x)}}", "", "step 's'"),
        ("s: {sql: 'select id, sum(distinct x) as n from a group by id'}", "", "step 's'"),
        ("s: {sql: 'select id, count(*) n from a group by id having count(distinct x) > 1'}", "", "step 's'"),
        ("s: {sql: select * from a}", "views: {v: {from: s, by: [id], aggregate: {n: sum(distinct x)}}}\n", "view 'v'"),
        ("s: {sql: 'select a.id, n from a join (select id, count(distinct name) n from t group by id) q using (id)'}",
         "", None),
        ("s: {sql: 'select id, (select count(distinct name) from t) k, count(*) n from a group by id'}", "", None),
        ("s: {sql: 'select id, 1 + count(distinct x) as n from a group by id'}", "", "step 's'"),
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


@pytest.mark.parametrize(
    ("steps", "is_warned"),
    [
        ("q: {from: a, deduplicate: {key: [x], within: 1 minute}}", False),  # sorted by the offsets of the records
        ("q: {sql: 'select a.id, x, y from a join b using (id)'}", True),
        ("p: {sql: 'with c as (select * from a) select id, x from c'}, q: {from: p, deduplicate: {key: [x]}}", True),
        ("q: {from: a, deduplicate: {key: [id]}}", False),
        ("q: {from: a, state: {key: [id], processor: 'json:JSONDecoder'}, schema: 'id BIGINT, x DOUBLE'}", False),
        ("q: {from: a, state: {key: [x], processor: 'json:JSONDecoder'}, schema: 'id BIGINT, x DOUBLE'}", True),
        ("q: {from: a, join: {table: t, on: [id]}}", False),
        ("q: {sql: 'select id, x from a where x > 1'}", False),
    ],
)
def test_keyed_state_behind_other_state_gets_rows_in_no_order(steps: str, is_warned: bool) -> None:
    state = "s: {from: q, state: {key: [id], processor: 'json:JSONDecoder'}, schema: 'id BIGINT'}"
    lines = reported_for(f"steps: {{{steps}, {state}}}\nsinks: {{o: {{from: s, topic: o}}}}\n", head=HEAD)
    assert [line for line in lines if line.startswith("error")] == []
    found = [line for line in lines if "in no order, because step 'q' divides them" in line]
    assert [line.startswith("warning: the processor of step 's'") for line in found] == [True] * is_warned, lines


def test_keyed_state_of_several_files_in_a_batch_is_a_warning() -> None:
    head = HEAD.replace(
        'format: csv}, schema: "id BIGINT, name STRING"', 'format: csv}, stream: true, schema: "id BIGINT"'
    )
    text = "steps: {s: {from: t, state: {key: [id], processor: 'json:JSONDecoder'}, schema: 'id BIGINT'}}\n" + TOPIC
    lines = reported_for(text, head=head)
    assert [line for line in lines if "in no order, because source 't', which reads files, does not keep" in line], (
        lines
    )


def test_keyed_state_behind_a_step_that_mixes_rows_is_a_warning() -> None:
    text = (
        "steps:\n  p: {from: [a], python: 'json:loads', schema: 'id BIGINT'}\n"
        "  q: {from: p, join: {table: t, on: [id]}}\n"
        "  s: {from: q, state: {key: [id], processor: 'json:JSONDecoder'}, schema: 'id BIGINT'}\n"
        "sinks: {o: {from: s, topic: o}}\n"
    )
    lines = reported_for(text, head=HEAD)
    assert [line for line in lines if "in no order, because step 'q' does not keep their order" in line], lines
