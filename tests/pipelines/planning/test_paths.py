"""What each kind of step gives to the steps behind it."""

from __future__ import annotations

import pytest

from tests.pipelines.planning.plans import WINDOW, path_behind, planned

COUNT = "aggregate: {n: count(*)}"


@pytest.mark.parametrize(
    ("step", "event_time", "is_ordered"),
    [
        ("{sql: 'select * from orders where amount > 0'}", "at", True),
        ("{sql: 'select id, at as ordered_at from orders'}", "ordered_at", True),
        ("{sql: 'select id as k, k as id, at as t, t as t2 from orders'}", "t", True),
        ("{sql: 'select * except (at) from orders'}", None, True),
        ("{sql: 'select at + interval 1 hour as at from orders'}", None, True),
        ("{sql: 'select o.* from orders o lateral view explode(array(1, 2)) e as i'}", "at", True),
        ("{sql: 'select * from orders o join customers c using (customer)'}", "at", False),
        ("{sql: 'select * from orders where customer in (select customer from customers)'}", "at", False),
        ("{sql: 'select * from orders union all select * from clicks'}", None, False),
        ("{sql: select * from orders join customers using (customer)}", "at", False),
        ("{from: orders, deduplicate: {key: id}}", "at", False),
        ("{from: orders, join: {stream: payments, on: id, within: 1 hour}}", "at", False),
        ("{from: orders, join: {stream: payments, on: id, within: 1 hour, how: right}}", "paid_at", False),
        ("{from: orders, join: {stream: payments, on: id, within: 1 hour, how: full}}", None, False),
        ("{from: orders, join: {stream: payments, on: id, within: forever}}", None, False),
        ('{from: orders, python: "m:f", schema: "id BIGINT, seen TIMESTAMP"}', None, False),
        ('{from: orders, python: "m:f", schema: "id BIGINT, at TIMESTAMP"}', "at", False),
        ('{from: orders, state: {processor: "m:C", key: id}}', None, False),
        ("{from: clicks, deduplicate: {key: id}}", None, False),
    ],
)
def test_event_time_and_order(step: str, event_time: str | None, is_ordered: bool) -> None:
    path = path_behind(step)
    assert (path.event_time, path.is_ordered) == (event_time, is_ordered)


@pytest.mark.parametrize(
    ("step", "groups", "event_time", "is_final"),
    [
        (f"{{from: orders, {COUNT}, by: customer}}", (("customer",),), None, False),
        (f"{{from: orders, {COUNT}, by: [customer, at]}}", (("customer",), ("at",)), "at", True),
        (f"{{from: orders, {COUNT}, {WINDOW}}}", (("window_start", "window_end"),), "window_end", True),
        ("{sql: 'select customer as c, count(*) as n from orders group by customer'}", (("c",),), None, False),
        ("{sql: 'select count(*) as n from orders group by customer'}", ((),), None, False),
        ("{sql: 'select count(*) as n from orders'}", (), None, False),
        (
            "{sql: \"select window.end as until, count(*) as n from orders group by window(at, '1 minute')\"}",
            (("until",),), "until", True,
        ),
        (
            "{sql: \"select window.start as since, count(*) as n from orders group by window(at, '1 minute')\"}",
            (("since",),), None, True,
        ),
        (
            "{sql: \"select date_trunc('hour', at) as hour from orders group by date_trunc('hour', at)\"}",
            (("hour",),), None, False,
        ),
    ],
)  # fmt: skip
def test_groups(step: str, groups: tuple[tuple[str, ...], ...], event_time: str | None, is_final: bool) -> None:
    path = path_behind(step)
    assert (path.groups, path.event_time, path.never_final is None) == (groups, event_time, is_final)
    assert path.can_change


def test_a_select_behind_groups_renames_their_columns() -> None:
    text = """
    steps:
      counted: {sql: "select customer, count(*) as n from orders group by customer having n > 2"}
      named: {sql: "select customer as c, upper(customer) as u, n from counted where n > 3"}
      several: {sql: "select c, i from named lateral view explode(array(1, 2)) e as i"}
    """
    plan, _ = planned(text)
    assert plan.table("counted").inputs == ("counted__groups",)
    assert plan.path("named").groups == (("c",),)
    assert plan.path("named").is_ordered
    assert plan.path("several").groups == (("c",),)
    assert not plan.path("several").is_ordered  # there are several rows of a group


@pytest.mark.parametrize(
    "behind",
    [
        "{from: first, deduplicate: {key: customer}}",
        "{from: first, aggregate: {n: count(*)}, by: customer}",
        "{sql: 'select * from first union all select * from first'}",
    ],
)
def test_state_and_unions_behind_groups_read_final_ones(behind: str) -> None:
    text = f"steps:\n  first: {{from: orders, {COUNT}, by: customer, {WINDOW}}}\n  s: {behind}\n"
    assert not planned(text)[0].path("s").can_change


def test_groups_behind_deduplicate_can_change_and_those_behind_other_state_cannot() -> None:
    counted = f"  s: {{from: first, {COUNT}, by: id}}\n"
    unique = "steps:\n  first: {from: orders, deduplicate: {key: id}}\n" + counted
    joined = "steps:\n  first: {from: orders, join: {stream: payments, on: id, within: 1 hour}}\n" + counted
    assert planned(unique)[0].path("s").can_change
    assert not planned(joined)[0].path("s").can_change


def test_sessions_are_final() -> None:
    path = path_behind(f"{{from: orders, {COUNT}, by: customer, window: {{column: at, gap: 5 minutes}}}}")
    assert path.sessions == "s"
    assert not path.can_change
    assert path.never_final is None
