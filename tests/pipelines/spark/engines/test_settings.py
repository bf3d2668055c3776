"""Which queries do not count the rows of their state: those with a join of streams, unless the user asks for it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from odradek.pipelines.spark.engines.flow_queries import COUNTED_ROWS, counts_state_rows, settings_of
from odradek.pipelines.spark.sessions.session import PROVIDER
from tests.pipelines.planning.plans import sound_plan

ONE_PARTITION: Any = SimpleNamespace(conf=SimpleNamespace(get=lambda _key, _default=None: "1"))
JOIN = "{from: orders, join: {stream: payments, on: [id], within: 1 hour}}"
IN_MEMORY = "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider"


@pytest.mark.parametrize(
    ("step", "spark", "settings", "is_counted"),
    [
        (JOIN, "{}", {COUNTED_ROWS: "false"}, False),
        ('{sql: "select o.id from orders o join payments p on o.id = p.id and o.at = p.paid_at"}', "{}",
         {COUNTED_ROWS: "false"}, False),
        ("{from: orders, deduplicate: {key: [id], within: 1 minute}}", "{}", {}, True),
        ("{from: orders, aggregate: {n: count(*)}, window: {column: at, size: 1 minute}}", "{}", {}, True),
        (JOIN, f"{{{COUNTED_ROWS}: true}}", {}, True),
        (JOIN, f"{{{COUNTED_ROWS}: false}}", {}, False),
        (JOIN, f"{{{PROVIDER}: {IN_MEMORY}}}", {}, True),
    ],
    ids=["join", "join in SQL", "deduplication", "windows", "on by the user", "off by the user", "in memory"],
)  # fmt: skip
def test_rows_in_the_state_of_a_join_are_not_counted(
    step: str, spark: str, settings: dict[str, str], is_counted: bool
) -> None:
    plan = sound_plan(f"spark: {spark}\nsteps: {{s: {step}}}\nsinks: {{out: {{from: s, topic: out}}}}\n")
    (flow,) = [each for each in plan.flows if each.ends]
    found = settings_of(ONE_PARTITION, plan, flow)
    assert found == settings
    assert counts_state_rows(plan.pipeline, found) is is_counted
