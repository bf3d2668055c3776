"""Definitions that would mean something else by batch, sink or engine are refused."""

from __future__ import annotations

import pytest

from odradek.pipelines.definition.vocabulary import Engine
from tests.pipelines.definition.definitions import reported_for
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
    ],
)
def test_filters_behind_an_aggregation(step: str, is_refused: bool) -> None:
    lines = reported_for(f"steps: {{c: {{sql: '{COUNTS}'}}, {step}}}\n{TABLE}", head=HEAD)
    assert bool([line for line in lines if "which changes" in line]) is is_refused, lines


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
