"""The tables that a definition is taken apart into, its ends, and names that cannot be resolved."""

from __future__ import annotations

import pytest

from odradek.pipelines.definition.vocabulary import Otherwise
from odradek.pipelines.planning.plan import EndMode, GroupSql, PairSql, RowSql, StaticSql, UnionSql
from tests.pipelines.planning.plans import planned, sound_plan


def test_having_is_a_row_by_row_step_behind_the_groups() -> None:
    plan = sound_plan("""
    steps:
      minutes:
        sql: |
          select customer, window.end as until, count(distinct id) as orders
          from orders group by customer, window(at, '1 minute') having orders >= 3
    sinks: {minutes: {from: minutes, table: minutes, key: [customer, until]}}
    """)
    groups, minutes = plan.table("minutes__groups"), plan.table("minutes")
    assert isinstance(groups.made_by, GroupSql)
    assert groups.columns is not None
    assert groups.columns.names == ["customer", "until", "orders", "__passes"]
    assert isinstance(minutes.made_by, RowSql)
    assert minutes.columns is not None
    assert minutes.columns.names == ["customer", "until", "orders"]
    assert groups.is_hidden
    assert groups.described == "step 'minutes'"


def test_a_join_of_streams_in_sql_is_pairs_and_a_select_behind_them() -> None:
    plan = sound_plan("""
    steps:
      settled:
        sql: |
          with paid as (select * from payments where paid > 0)
          select o.*, p.paid from orders o join paid p
          on o.id = p.id and p.paid_at between o.at and o.at + interval 1 hour
    sinks: {settled: {from: settled, topic: settled}}
    """)
    pairs, settled = plan.table("settled__pairs"), plan.table("settled")
    assert isinstance(pairs.made_by, PairSql)
    assert pairs.inputs == ("orders", "settled__paid")
    assert pairs.path.event_time == "l_at"
    assert pairs.columns is not None
    assert {"l_id", "l_at", "r_id", "r_paid"} <= set(pairs.columns.names)
    assert isinstance(settled.made_by, RowSql)
    assert settled.made_by.pairs is pairs.made_by.shape
    assert settled.path.event_time == "at"
    assert plan.upstream("settled") == ("orders", "payments", "settled__paid", "settled__pairs", "settled")


def test_each_part_of_union_all_is_a_table() -> None:
    plan, _ = planned('steps:\n  all_of: {sql: "select id, at from orders union all select id, at from clicks"}\n')
    union = plan.table("all_of").made_by
    assert isinstance(union, UnionSql)
    assert plan.table("all_of").inputs == union.parts == ("all_of__part1", "all_of__part2")
    assert plan.table("all_of__part2").inputs == ("clicks",)


def test_groups_and_joins_may_be_parts_of_union_all() -> None:
    plan, _ = planned("""
    steps:
      counts:
        sql: |
          select customer, count(*) as n from orders group by customer, window(at, '1 hour')
          union all select url, 1 from clicks
    """)
    assert isinstance(plan.table("counts__part1").made_by, GroupSql)
    assert not plan.path("counts").can_change


def test_static_sql_is_not_taken_apart() -> None:
    plan, _ = planned(
        'steps:\n  top: {sql: "with c as (select * from customers) select * from c order by 1 limit 3"}\n'
    )
    assert isinstance(plan.table("top").made_by, StaticSql)
    assert not plan.is_stream("top")


def test_a_watermark_brings_a_check_before_the_expectations() -> None:
    plan, _ = planned("""
    steps:
      timed:
        sql: select * from clicks
        watermark: {column: at, delay: 1 minute}
        expect: {known: {check: url is not null, otherwise: drop}}
    """)
    implicit, known = plan.table("timed").checks
    assert (implicit.name, implicit.condition, implicit.otherwise) == (
        "no event time", "`at` is not null", Otherwise.QUARANTINE
    )  # fmt: skip
    assert implicit.is_implicit
    assert (known.name, known.is_implicit) == ("known", False)
    assert plan.table("clicks").checks == ()


def test_an_aggregate_view_is_groups_and_a_keyed_end() -> None:
    plan = sound_plan("views: {totals: {from: orders, aggregate: {n: count(*)}, by: [customer]}}\n")
    (end,) = plan.ends
    assert (end.name, end.input, end.mode, end.key) == ("totals", "totals__view", EndMode.KEYED, ("customer",))
    assert end.is_view
    assert plan.table("totals__view").described == "view 'totals'"


@pytest.mark.parametrize(
    ("sink", "mode", "key", "order_by"),
    [
        ("{from: orders, topic: out}", EndMode.APPEND, (), ()),
        ("{from: orders, table: out, key: id, order_by: [at, id]}", EndMode.KEYED, ("id",), ("at", "id")),
        ("{from: orders, table: out, changes: {key: id, sequence: at}}", EndMode.CHANGES, ("id",), ("at",)),
        ("{from: orders, lakehouse: {format: delta, path: out, key: id}}", EndMode.KEYED, ("id",), ()),
    ],
)
def test_modes_of_sinks(sink: str, mode: EndMode, key: tuple[str, ...], order_by: tuple[str, ...]) -> None:
    (end,) = planned(f"sinks: {{out: {sink}}}\n")[0].ends
    assert (end.mode, end.key, end.order_by) == (mode, key, order_by)


@pytest.mark.parametrize(
    ("definition", "verdict"),
    [
        (
            "  s: {sql: select * from order}",
            "read 'order', which is neither a source nor a step; did you mean 'orders'?",
        ),
        ("  s: {sql: select * from s}", "step 's' reads itself, directly or through other steps"),
        ("  s: {sql: select * from t}\n  t: {sql: select * from s}", "step 't' reads itself"),
        ("  s: {sql: select id form orders}", "OD03: the SQL of step 's' cannot be read"),
        ("  s: {sql: select idd from orders}", "OD04: there is no column 'idd' in step 's'; did you mean 'id'?"),
        (
            "  s: {from: orders, aggregate: {n: count(*)}, by: buyer}",
            "names the column 'buyer', which 'orders' has not",
        ),
        ("  s: {from: orders, aggregate: {n: sum(amont)}}", "there is no column 'amont' in step 's'"),
        ("  s: {from: orders, aggregate: {n: count(}}", "the SQL of step 's' cannot be read"),
        ("  s: {from: clicks, deduplicate: {key: customer}}", "names the column 'customer', which 'clicks' has not"),
    ],
)
def test_names_and_sql_that_cannot_be_resolved(definition: str, verdict: str) -> None:
    _, found = planned(f"steps:\n{definition}\n")
    assert any(verdict.removeprefix("read ") in each for each in found), found


HAVING = "  s: {sql: 'select customer, count(*) as n from orders group by customer having n > 1'}\n"


def test_the_name_of_a_hidden_table_is_taken() -> None:
    other = "  s__groups: {sql: select * from clicks}\n"
    for steps in (HAVING + other, other + HAVING):
        _, found = planned(f"steps:\n{steps}")
        assert any("OD02: the name 's__groups' is that of a part of 's'; choose another name" in each for each in found)


def test_a_view_may_have_the_name_of_its_step() -> None:
    view = "views: {s: {from: s, aggregate: {m: max(n)}, by: [customer]}}\n"
    _, found = planned(f"steps:\n{HAVING}{view}")
    assert not any("OD02" in each for each in found)


def test_an_end_of_a_table_that_is_not_declared() -> None:
    _, found = planned("sinks: {out: {from: order, topic: out}}\n")
    assert found[0].endswith("'out' reads 'order', which is neither a source nor a step; did you mean 'orders'?")


def test_a_step_whose_input_cannot_be_read_is_left_out() -> None:
    plan, found = planned("""
    steps:
      odd: {sql: "select (from orders"}
      behind: {sql: select * from odd}
    sinks: {out: {from: behind, topic: out}}
    """)
    assert len(found) == 1
    assert "behind" not in plan.tables


def test_what_follows_from_a_refused_step_is_not_reported() -> None:
    _, found = planned("""
    steps:
      distinct_ones: {sql: select distinct id from orders}
      once: {from: distinct_ones, deduplicate: {key: id, within: 1 hour}}
    views: {last: {from: once, key: id}}
    """)
    assert [each.split(" ")[2] for each in found] == ["OP001:"]
