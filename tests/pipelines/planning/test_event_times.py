"""Which columns are event time behind queries, and which groups become final: as Spark sees it."""

from __future__ import annotations

import pytest

from odradek.pipelines.definition.graph import build_graph
from odradek.pipelines.planning.streams import Streams
from tests.pipelines.definition.definitions import reported_for, sound

HEAD = """
pipeline: p
warehouse: sqlite:///w.db
sources:
  a:
    topic: a
    schema: "id BIGINT, at TIMESTAMP, other TIMESTAMP, x DOUBLE, nested STRUCT<at: TIMESTAMP>"
    watermark: {column: at, delay: 1 minute}
  bare: {topic: b, schema: "id BIGINT, at TIMESTAMP"}
"""
TOPIC = "sinks: {o: {from: s, topic: o}}\n"
UPDATED = "sinks: {o: {from: s, topic: o, mode: update}}\n"
WINDOWS = "select id, window as w, count(*) n from a group by id, window(at, '1 minute')"
ENDS = "select id, window.end as e, count(*) n from a group by id, window(at, '1 minute')"
UNFINISHED = [  # queries with an aggregation that does not group by event time
    "select date_trunc('hour', at) h, count(*) n from a where at is not null group by 1",
    "select distinct to_date(at) d from a where at is not null",
    "select window(at + interval 1 hour, '1 minute') w, count(*) n from a group by 1",
    "select window(cast(at as timestamp), '1 minute') w, count(*) n from a group by 1",
    "select window(nested.at, '1 minute') w, count(*) n from a group by 1",
    "select window(at, '1 minute').start s, count(*) n from a group by window(at, '1 minute').start",
    f"select e, count(*) n from ({ENDS}) group by e",
    f"select window(e, '1 hour') h, count(*) n from ({ENDS}) group by window(e, '1 hour')",
    f"select id, sum(n) n from ({WINDOWS}) group by id",
    f"select distinct id from ({WINDOWS})",
    f"{ENDS} union select id, other, 1 from a",
    f"{ENDS} union all select id, null, count(*) from a group by id",
    f"with x as ({WINDOWS}), y as (select id, sum(n) n from x group by id) select * from y",
]
FINAL = [
    "select (at) as seen, count(*) n from a where at is not null group by seen",
    "select a.at, count(*) n from a where at is not null group by at",
    f"select w, sum(n) n from ({WINDOWS}) group by w",
    "select w, count(*) n from (select window(at, '1 minute') w from a) group by w",
    f"select window(w, '1 hour').end h, sum(n) n from ({WINDOWS}) group by window(w, '1 hour')",
    f"select window(window_time(w), '1 hour') h, sum(n) n from ({WINDOWS}) group by 1",
    f"select distinct id, w from ({WINDOWS})",
    f"{ENDS} union all select id, window.end, sum(x) from a group by id, window(at, '1 hour')",
    "select id, window(at, '1 minute') w from a union select id, window(at, '1 hour') from a",
]
UNITED = "select id, %s from %s union all select id, %s from %s"
SELECTED = {  # the columns of event time behind a query of one step
    "select id, at from a": {"at"},
    "select id, at + interval 1 hour as at from a": set(),
    "select id, other as at from a": set(),
    "select id, coalesce(at, other) as at from a": set(),
    "select id, nested.at from a": set(),
    "select id, max(at) as at from a group by id": set(),
    "select a.*, a.at as seen from a": {"at", "seen"},
    "select id, t.at from (select id, at from a) t": {"at"},
    "with x(id, seen) as (select id, at from a) select * from x": {"seen"},
    "select id, at, tag from a lateral view explode(array(1, 2)) t as tag": {"at"},
    UNITED % ("at", "a", "at", "bare"): {"at"},
    UNITED % ("at", "bare", "at", "a"): set(),
    UNITED % ("other as at", "a", "at", "a"): set(),
    f"select id, e as f, n from ({ENDS})": {"f"},
    f"select * from ({ENDS}) union all select id, other, 1 from a": set(),
}


def errors(*queries: str, end: str = TOPIC) -> list[str]:
    """The errors of a sink behind queries, of which each reads the one before as `q1`, `q2` …; the last one is `s`."""
    names = [*(f"q{at}" for at in range(1, len(queries))), "s"]
    steps = "".join(f'  {name}: {{sql: "{sql}"}}\n' for name, sql in zip(names, queries, strict=True))
    return [line for line in reported_for(f"steps:\n{steps}{end}", head=HEAD) if line.startswith("error")]


@pytest.mark.parametrize("sql", UNFINISHED)
def test_each_aggregation_of_a_query_groups_by_event_time(sql: str) -> None:
    assert ["without grouping by event time" in line for line in errors(sql)] == [True], errors(sql)


@pytest.mark.parametrize("sql", FINAL)
def test_columns_and_windows_of_event_time_make_groups_final(sql: str) -> None:
    assert errors(sql) == []


@pytest.mark.parametrize(
    ("queries", "marks"),
    [
        *(((sql,), marks) for sql, marks in SELECTED.items()),
        ((WINDOWS, "select id, w.end as e from q1"), {"e"}),
        ((WINDOWS, "select q1.id, q1.w.start as b, q1.w.end as e from q1"), {"e"}),
        ((WINDOWS, "select id, window_time(w) as t from q1"), {"t"}),
    ],
)
def test_the_event_time_behind_a_query(queries: tuple[str, ...], marks: set[str]) -> None:
    names = [*(f"q{at}" for at in range(1, len(queries))), "s"]
    steps = "".join(f'  {name}: {{sql: "{sql}"}}\n' for name, sql in zip(names, queries, strict=True))
    pipeline = sound(f"{HEAD}steps:\n{steps}{UPDATED}")
    assert Streams.of(pipeline, build_graph(pipeline)).watermarks["s"] == marks


def test_a_window_that_a_step_selects_is_event_time_behind_it() -> None:
    assert errors(WINDOWS, "select w, sum(n) n from q1 group by w") == []
    assert errors(WINDOWS, "select window, sum(n) n from q1 group by window(w, '1 hour')") == []
    assert errors(WINDOWS, "select window as v, n from (select w as window, n from q1) group by window, n") == []


SESSIONS = "select id, session_window as w, count(*) n from a group by id, session_window(at, '1 minute')"


def test_sessions_of_another_step_are_not_grouped_by() -> None:
    for sql in ("select id, w, sum(n) n from q1 group by id, w", "select distinct id, w from q1"):
        assert [line for line in errors(SESSIONS, sql) if "groups by 'w', the sessions of a step before it" in line]
    assert errors(SESSIONS, "select id, window(w, '1 hour') h, sum(n) n from q1 group by 1, 2") == []
    assert errors(SESSIONS, "select id, w.end as e, n from q1", "select e, sum(n) n from q2 group by e") == []


def test_keyed_state_returns_rows_without_event_time() -> None:
    steps = """
steps:
  q: {from: a, state: {key: [id], processor: "m:P"}, schema: "id BIGINT, at TIMESTAMP"}
  s: {from: q, by: [id], window: {column: at, size: 1 minute}, aggregate: {n: count(*)}}
"""
    found = [line for line in reported_for(steps + TOPIC, head=HEAD) if "aggregates a stream" in line]
    hint = "do this before it, or in its processor, or set mode: update"
    assert ["the rows of step 'q' are new" in line and hint in line for line in found] == [True], found


def test_a_full_join_has_no_event_time_and_no_updates() -> None:
    steps = """
steps:
  j: {from: a, join: {stream: b, on: [id], within: 1 minute, how: full}}
  s: {from: j, by: [id], window: {column: at, size: 1 minute}, aggregate: {n: count(*)}}
"""
    other = '  b: {topic: b, schema: "id BIGINT, seen TIMESTAMP", watermark: {column: seen, delay: 1 minute}}\n'
    found = [line for line in reported_for(steps + TOPIC, head=HEAD + other) if line.startswith("error")]
    assert ["write how: left or how: right, or do this before it" in line for line in found] == [True], found
    assert "mode: update" not in found[0]


@pytest.mark.parametrize("more", ["", " union all select id, other from a"])
def test_a_union_has_the_event_time_of_its_first_select(more: str) -> None:
    steps = """
steps:
  q: {sql: "select id, at from %s union all select id, at from %s"}
  s: {sql: "select window.end as e, count(*) n from q group by window(at, '1 minute')"}
"""
    steps = steps.replace('%s"', f'%s{more}"')
    found = [line for line in reported_for(steps % ("bare", "a") + TOPIC, head=HEAD) if line.startswith("error")]
    remedy = "add watermark: {column: …, delay: …} to 'bare', or write a SELECT with event time first, or set mode"
    assert [f"the event time of the first SELECT of UNION ALL: {remedy}" in line for line in found] == [True], found
    found = reported_for(steps % ("a", "bare") + TOPIC, head=HEAD)
    assert [line for line in found if line.startswith("error")] == []


def test_lost_event_time_is_reported_with_the_column_of_the_watermark() -> None:
    steps = """
steps:
  q: {sql: "select id, at + interval 1 hour as at from a"}
  s: {from: q, by: [id], window: {column: at, size: 1 minute}, aggregate: {n: count(*)}}
  d: {from: q, deduplicate: {key: [id], within: 1 minute}}
"""
    found = reported_for(f"{steps}sinks: {{o: {{from: s, topic: o}}, p: {{from: d, topic: p}}}}\n", head=HEAD)
    assert len([line for line in found if "select 'at' as it is in the steps between" in line]) == 2, found
    again = steps.replace('from a"', 'from a", watermark: {column: at, delay: 1 minute}')
    found = reported_for(f"{again}sinks: {{o: {{from: s, topic: o}}}}\n", head=HEAD)
    assert [line for line in found if "has a watermark, and its input has one already (column 'at')" in line], found


@pytest.mark.parametrize(
    "step",
    [
        "s: {from: a, by: [at], window: {column: at, size: 1 minute}, aggregate: {n: count(*)}}",
        "s: {sql: \"select at, window, count(*) n from a group by at, window(at, '1 minute')\"}",
        "q: {sql: 'select *, at as seen from a'}, s: {from: q, by: [at, seen], aggregate: {n: count(*)}}",
        "q: {sql: 'select *, at as seen from a'}, s: {from: q, deduplicate: {key: [id]}}",
        "q: {sql: 'select *, at as seen from a'}, s: {sql: 'select distinct id, at, seen from q'}",
    ],
)
def test_state_has_one_column_of_event_time(step: str) -> None:
    lines = reported_for(f"steps: {{{step}}}\n{UPDATED}", head=HEAD)
    assert [line for line in lines if "has several columns of event time in its state" in line], lines


@pytest.mark.parametrize(
    ("sql", "is_refused"),
    [
        ("select n, count(*) m from (select id, count(*) n from a group by id) group by n", True),
        ("select distinct n from (select id, count(*) n from a group by id)", True),
        ("select distinct count(*) n from a group by id", True),
        ("with x as (select id, count(*) n from a group by id) select id, n from x union select id, x from a", True),
        ("select id, count(*) n from a group by id union all select id, count(*) from a group by id", False),
        (
            "select a.id, count(*) n from a join (select id, count(*) m from t group by id) u using (id) group by 1",
            False,
        ),
    ],
)
def test_groups_of_groups_are_not_updated(sql: str, is_refused: bool) -> None:
    head = HEAD + "  t: {files: {path: t.csv, format: csv}, schema: id BIGINT}\n"
    lines = [line for line in reported_for(f'steps: {{s: {{sql: "{sql}"}}}}\n{UPDATED}', head=head) if "error" in line]
    assert ["aggregates the groups of an aggregation" in line for line in lines] == [True] * is_refused, lines
