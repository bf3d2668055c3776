"""The flows of a plan: their roots, their modes, and which of them writes refused rows."""

from __future__ import annotations

from odradek.pipelines.planning.plan import Flow, OutputMode
from tests.pipelines.planning.plans import sound_plan

READINGS = """
steps:
  sound: {sql: "select * from orders where amount > 0", expect: {known: {check: customer is not null, otherwise: drop}}}
  large: {sql: "select id, at from sound where amount > 100"}
  hours: {from: sound, aggregate: {n: count(*)}, by: [customer], window: {column: at, size: 1 hour}}
"""


def flows_of(ends: str, steps: str = READINGS) -> dict[str, Flow]:
    return {each.name: each for each in sound_plan(steps + ends).flows}


def test_rows_of_one_source_are_one_flow_that_is_a_row_program() -> None:
    flows = flows_of("sinks: {large: {from: large, topic: large}, sound: {from: sound, topic: sound}}\n")
    (flow,) = flows.values()
    assert (flow.name, flow.root, flow.after) == ("orders", "orders", ("sound", "large"))
    assert {each.name for each in flow.ends} == {"large", "sound"}
    assert flow.owned == {"orders", "sound"}
    assert flow.is_row_program


def test_state_is_the_root_of_its_flow() -> None:
    flows = flows_of("sinks: {hours: {from: hours, topic: hours}, large: {from: large, topic: large}}\n")
    assert set(flows) == {"hours", "orders"}
    assert flows["hours"].mode is OutputMode.APPEND
    assert flows["hours"].owned == frozenset()
    assert flows["orders"].owned == {"orders", "sound"}


def test_what_refuses_rows_has_a_flow_without_ends_if_no_other_has_its_rows() -> None:
    flows = flows_of("sinks: {hours: {from: hours, topic: hours}}\n")
    assert flows["orders"].ends == ()
    assert flows["orders"].owned == {"sound"}
    assert flows["hours"].counted == {"orders"}  # there is no topic for dead letters


def test_what_implicit_checks_refuse_is_counted_by_the_flow_behind_it() -> None:
    steps = """
steps:
  doubled: {sql: "select customer, int(amount) as twice, at from orders"}
  hours: {from: doubled, aggregate: {total: sum(twice)}, window: {column: at, size: 1 hour}}
"""
    end = "sinks: {hours: {from: hours, topic: hours}}\n"
    (flow,) = flows_of(end, steps).values()
    assert flow.counted == {"orders", "doubled"}
    with_letters = flows_of(end + "dead_letters: refused\n", steps)
    assert with_letters["orders"].owned == {"orders", "doubled"}


def test_current_groups_have_a_flow_of_their_own() -> None:
    ends = "sinks: {hours: {from: hours, topic: hours}}\nviews: {hours: {from: hours, key: [customer, window_end]}}\n"
    flows = flows_of(ends)
    assert flows["hours"].mode is OutputMode.APPEND
    assert flows["hours-changes"].mode is OutputMode.UPDATE
    assert [each.is_view for each in flows["hours-changes"].ends] == [True]


def test_views_of_rows_run_with_the_trigger_of_state() -> None:
    flows = flows_of("views: {last: {from: sound, key: id}}\n")
    assert flows["orders-views"].uses_state_trigger


def test_an_aggregate_view_is_a_flow() -> None:
    flows = flows_of("views: {totals: {from: sound, aggregate: {n: count(*)}, by: [customer]}}\n")
    assert flows["view-totals"].root == "totals__view"
    assert flows["view-totals"].mode is OutputMode.UPDATE


def test_files_are_a_flow_without_batches() -> None:
    flows = flows_of("sinks: {out: {from: large, files: {path: out, format: json}}}\n")
    assert flows["files-out"].root == "large"
    assert flows["files-out"].files is not None


def test_hidden_tables_do_not_show_in_names() -> None:
    steps = """
steps:
  totals: {sql: "select customer, count(*) as n from orders group by customer having count(*) > 1"}
  settled: {sql: "select o.id from orders o join payments p on o.id = p.id and o.at = p.paid_at"}
"""
    ends = "sinks: {totals: {from: totals, topic: t, mode: update}, settled: {from: settled, topic: s}}\n"
    flows = flows_of(ends, steps)
    assert {"totals-changes", "settled"} <= set(flows)
    assert (flows["settled"].root, flows["settled"].after) == ("settled__pairs", ("settled",))


def test_two_streams_without_state_meet_at_the_root() -> None:
    steps = 'steps:\n  both: {sql: "select id, at from orders union all select id, at from clicks"}\n'
    flows = flows_of("sinks: {both: {from: both, topic: both}}\n", steps)
    assert flows["both"].root == "both"
    assert flows["both"].counted == {"clicks", "orders"}


def test_sources_that_no_end_uses_are_not_read() -> None:
    flows = flows_of("sinks: {large: {from: large, topic: large}}\n")
    assert set(flows) == {"orders"}


def test_what_has_a_watermark_is_no_row_program() -> None:
    plain = "sinks: {out: {from: sound, topic: out}}\n"
    timed = "steps:\n  s: {sql: select * from clicks, watermark: {column: at, delay: 1 minute}}\n"
    assert flows_of(plain)["orders"].is_row_program
    assert not flows_of("sinks: {out: {from: s, topic: out}}\n", timed)["clicks"].is_row_program
