"""What a definition is counted as, and what the constructs need."""

from __future__ import annotations

import pytest

from tests.pipelines.generated.constructs import NEEDS, Construct, constructs_of
from tests.pipelines.planning.plans import sound_plan


@pytest.mark.parametrize(
    ("steps", "constructs"),
    [
        ("  s: {sql: select * from orders where id > 1}", {"select", "where"}),
        ("  s: {sql: 'select explode(array(1, 2)) as i from orders'}", {"select", "generator"}),
        ("  s: {sql: 'select o.id from orders o, payments p where o.id = p.id and o.at = p.paid_at'}",
         {"select", "where", "hidden step", "stream join in SQL"}),
        ("  s: {from: orders, join: {stream: payments, on: id, within: 1 hour, how: left}}",
         {"stream join", "outer stream join"}),
        ("  s: {sql: select id from orders join customers using (customer)}", {"select", "table join"}),
        ("  s: {sql: \"select count(distinct id) as n from orders group by window(at, '1 hour')\"}",
         {"group in SQL", "count distinct", "window"}),
        ("  s: {from: orders, aggregate: {n: count(*)}, window: {column: at, size: 1 hour, slide: 1 minute}}",
         {"group", "sliding window"}),
    ],
)  # fmt: skip
def test_a_definition_has_these_constructs(steps: str, constructs: set[str]) -> None:
    plan = sound_plan(f"steps:\n{steps}\nsinks: {{out: {{from: s, topic: out}}}}\n")
    assert set(constructs_of(plan)) - {Construct.APPEND} == constructs


def test_what_has_state_reads_rows_or_final_groups() -> None:
    stateful = [each for each in Construct if each.startswith(("group", "window", "stream join", "dedup", "keyed"))]
    assert all(NEEDS[each].rows_or_final for each in stateful)
