"""The checks and the ends of a plan, and names that cannot be resolved."""

from __future__ import annotations

import pytest

from odradek.pipelines.definition.vocabulary import Otherwise
from odradek.pipelines.planning.plan import EndMode
from tests.pipelines.planning.plans import planned


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
