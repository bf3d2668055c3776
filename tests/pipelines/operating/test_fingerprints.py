"""What a checkpoint depends on: which changes of a definition it survives."""

from __future__ import annotations

import pytest

from odradek.pipelines.operating.fingerprints import Fingerprints, find_changes, fingerprints, merge
from tests.pipelines.planning.plans import SOURCES, planned

HOURS = "{from: orders, aggregate: {n: count(*)}, by: [customer], window: {column: at, size: 1 hour}}"
HOURS_SQL = "{sql: \"select customer, count(*) as n from orders group by customer, window(at, '1 hour')\"}"
JOIN = "{sql: 'select o.id from orders o join payments p on o.id = p.id and o.at = p.paid_at'}"
SINK = "sinks: {out: {from: s, topic: out}}\n"


def made(step: str, ends: str = SINK, head: str = SOURCES, **settings: str) -> Fingerprints:
    plan, verdicts = planned(f"steps:\n  s: {step}\n{ends}", head)
    assert plan.flows, verdicts
    return fingerprints(plan, settings, {"127.0.0.1:9092": "c1"})


def changes(before: Fingerprints, after: Fingerprints) -> list[str]:
    return [str(each) for each in find_changes(before, after, set(before.flows))]


@pytest.mark.parametrize(
    ("before", "after", "change"),
    [
        (
            HOURS,
            HOURS.replace("count(*)", "sum(id)"),
            "step s: aggregate by customer, windows of 1 hour by at: count(*) → ",
        ),
        (HOURS, HOURS.replace("count(*)", "COUNT( * )"), None),
        (HOURS, HOURS.replace("1 hour", "2 hours"), "step s: aggregate by customer, windows of 1 hour"),
        (HOURS_SQL, HOURS_SQL.replace("customer, count", "customer as c, count"), None),
        (HOURS_SQL, HOURS_SQL.replace("count(*)", "max(id)"), "step s: by customer, window(at, '1 hour'): count"),
        (HOURS_SQL, HOURS_SQL.replace("customer", "id"), "step s: by customer"),
        (JOIN, JOIN.replace("o.id from", "p.paid from"), None),
        (JOIN, JOIN.replace("o.at = p.paid_at", "p.paid_at between o.at and o.at + interval 1 hour"), "0 ms and 0 ms"),
        (
            "{from: orders, deduplicate: {key: id}}",
            "{from: orders, deduplicate: {key: customer}}",
            "first of id by at",
        ),
        (
            '{from: orders, state: {processor: "m:A", key: id}}',
            '{from: orders, state: {processor: "m:B", key: id}}',
            "state of id: m:A in processing time",
        ),
        ("{sql: select * from orders}", "{sql: select id from orders where id > 0}", None),
        ("{sql: select * from orders}", "{sql: select * from clicks}", "sink out: fed by: flow orders → flow clicks"),
    ],
)
def test_changes_of_a_step(before: str, after: str, change: str | None) -> None:
    found = changes(made(before), made(after))
    assert (change is None and not found) or (change is not None and change in found[0])


@pytest.mark.parametrize("step", [HOURS, "{from: orders, deduplicate: {key: id}}"])
def test_a_further_step_without_state_is_no_change(step: str) -> None:
    further = step.replace("from: orders", "from: good") + "\n  good: {sql: select * from orders where id > 0}"
    assert changes(made(step), made(further)) == changes(made(further), made(step)) == []


def test_other_topics_are_a_change() -> None:
    topic = made(HOURS, head=SOURCES.replace("topic: orders", "topic: sales"))
    assert changes(made(HOURS), topic) == [
        "flow s: source orders: topics orders of cluster c1 → topics sales of cluster c1"
    ]


def test_settings_of_the_state_are_compared_if_both_are_known() -> None:
    zone = {"spark.sql.session.timeZone": "UTC"}
    other = {"spark.sql.session.timeZone": "Europe/Prague"}
    assert changes(made(HOURS, **zone), made(HOURS)) == []
    assert changes(made(HOURS, **zone), made(HOURS, **other)) == ["flow s: time zone: UTC → Europe/Prague"]


def test_another_engine_and_other_changes_of_a_table() -> None:
    plain = "{sql: select * from orders}"
    table = "sinks: {out: {from: s, table: out, changes: {key: id, sequence: at}}}\n"
    realtime = made(plain, head=f"engine: realtime{SOURCES}")
    assert changes(made(plain), realtime) == ["the pipeline: engine: standard → realtime"]
    history = made(plain, table.replace("sequence: at", "sequence: at, history: true"))
    assert "current rows by id in the order of at → history" in changes(made(plain, table), history)[0]


def test_fingerprints_are_stored_and_those_of_other_versions_are_refused() -> None:
    found = made(HOURS)
    assert Fingerprints.of_object(found.as_object()) == found
    assert Fingerprints.of_object({**found.as_object(), "version": 3}) is None


def test_flows_that_are_removed_are_kept() -> None:
    before, after = made(HOURS), made("{sql: select * from clicks}")
    assert set(merge(before, after).flows) == {"s", "clicks"} | set(before.flows)
    assert merge(None, after) == after
