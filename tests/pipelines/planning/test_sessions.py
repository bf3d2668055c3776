"""Sessions: what is refused, when their rows are written, and which column is the event time behind windows."""

from __future__ import annotations

import pytest

from odradek.pipelines.definition.graph import build_graph
from odradek.pipelines.definition.lineage import lineage_of
from odradek.pipelines.definition.vocabulary import Engine, SinkMode
from odradek.pipelines.operating.fingerprints import Reader
from odradek.pipelines.planning.flows import split_flows
from odradek.pipelines.planning.state import State, state_of
from odradek.pipelines.planning.streams import Streams
from tests.pipelines.definition.definitions import reported_for, sound

HEAD = """
pipeline: p
warehouse: sqlite:///w.db
sources:
  views: {topic: views, schema: "user STRING, at TIMESTAMP", watermark: {column: at, delay: 1 minute}}
  bare: {topic: bare, schema: "user STRING, at TIMESTAMP"}
"""
SESSIONS = "  s: {from: views, by: [user], window: {column: at, gap: 30 minutes}, aggregate: {n: count(*)}}\n"
BY_SQL = (
    '  s: {sql: "select user, session_window.start as since, session_window.end as until, count(*) n from views '
    "group by user, session_window(at, '30 minutes')\"}\n"
)
CALL = "session_window(at, '30 minutes')"
BY_ORDINAL = f'  s: {{sql: "select {CALL} w, user, count(*) n from views group by 1, 2"}}\n'
BY_ALIAS = f'  s: {{sql: "select {CALL} w, user, count(*) n from views group by w, user"}}\n'
BY_ALL = f'  s: {{sql: "select {CALL} w, user, count(*) n from views group by all"}}\n'
BY_SUBQUERY = f'  s: {{sql: "select w, user, count(*) n from (select {CALL} w, user from views) group by w, user"}}\n'
COMMON = "  s: {sql: \"select 'all' as who, session_window(at, '1 minute') as w, count(*) n from views %s\"}\n"
TOPIC = "sinks: {o: {from: s, topic: o}}\n"
HOURLY = "  h: {from: s, window: {column: window_end, size: 1 hour}, aggregate: {n: sum(n)}}\n"


def errors(steps: str, ends: str, engine: Engine | None = None) -> list[str]:
    found = reported_for(f"steps:\n{steps}{ends}", head=HEAD, engine=engine)
    return [line for line in found if line.startswith("error")]


@pytest.mark.parametrize("steps", [SESSIONS, BY_SQL, BY_ORDINAL, BY_ALIAS, BY_ALL, BY_SUBQUERY])
@pytest.mark.parametrize(
    "ends",
    [
        TOPIC,
        "views: {v: {from: s, key: [user], order_by: n}}\n",
        "sinks: {o: {from: s, table: t, key: [user], order_by: n}}\n",
    ],
)
def test_sessions_are_written_when_they_have_ended(steps: str, ends: str) -> None:
    assert errors(steps, ends) == []
    pipeline = sound(f"{HEAD}steps:\n{steps}{ends}")
    graph = build_graph(pipeline)
    assert state_of(pipeline.steps[0], Streams.of(pipeline, graph).names) == State.AGGREGATION | State.SESSIONS
    assert [flow.mode for flow in split_flows(pipeline, graph) if flow.root == "s"] == [SinkMode.APPEND]


@pytest.mark.parametrize(
    ("steps", "ends", "message"),
    [
        (SESSIONS, "sinks: {o: {from: s, topic: o, mode: update}}\n", "which Spark writes once they ended"),
        (BY_SQL, "sinks: {o: {from: s, topic: o, mode: update}}\n", "which Spark writes once they ended"),
        (SESSIONS.replace("by: [user], ", ""), TOPIC, "sessions of all rows of a stream"),
        (COMMON % "group by session_window(at, '1 minute')", TOPIC, "sessions of all rows of a stream"),
        (COMMON % "group by 1, 2", TOPIC, "sessions of all rows of a stream"),
        (SESSIONS.replace("views", "bare"), TOPIC, "without a watermark, and sink 'o'"),
        (
            SESSIONS.replace("views", "bare"),
            "views: {v: {from: s, key: [user]}}\n",
            "without a watermark, and view 'v'",
        ),
        (SESSIONS, "views: {v: {from: s, by: [user], aggregate: {n: sum(n)}}}\n", "keeps state over the updated rows"),
        (SESSIONS.replace("gap", "slide: 1 minute, gap"), TOPIC, "slide of window of step 's' applies to size"),
        (SESSIONS.replace("gap", "size: 1 minute, gap"), TOPIC, "has both size and gap"),
        (SESSIONS.replace("30 minutes", "0 s"), TOPIC, "longer than 0"),
        (SESSIONS.replace(", gap: 30 minutes", ""), TOPIC, "has none of size, gap"),
        (
            SESSIONS + HOURLY.replace("window_end", "window_start"),
            "sinks: {o: {from: h, topic: o}}\n",
            "no group becomes final",
        ),
    ],
)
def test_what_spark_cannot_do_with_sessions_is_refused(steps: str, ends: str, message: str) -> None:
    found = errors(steps, ends)
    assert [line for line in found if message in line], found


def test_a_batch_has_sessions_of_all_rows() -> None:
    assert errors(SESSIONS.replace("by: [user], ", ""), TOPIC, Engine.BATCH) == []


def test_the_end_of_a_window_is_the_event_time_behind_it() -> None:
    pipeline = sound(f"{HEAD}steps:\n{SESSIONS}{HOURLY}sinks: {{o: {{from: h, topic: o}}}}\n")
    marks = Streams.of(pipeline, build_graph(pipeline)).watermarks
    assert marks["s"] == marks["h"] == {"window_end"}
    named = SESSIONS.replace("n: count(*)", "at: max(at)")
    pipeline = sound(f"{HEAD}steps:\n{named}{TOPIC}")
    assert Streams.of(pipeline, build_graph(pipeline)).watermarks["s"] == {"window_end"}


@pytest.mark.parametrize(
    ("sql", "marks"),
    [
        ("select user, window.start, window.end, count(*) n from views group by user, window(at, '1 minute')", {"end"}),
        ("select window.end as e, count(*) n from views group by window(at, '10 minutes', '5 minutes')", {"e"}),
        ("select session_window.end as e, user from views group by session_window(at, '1 minute'), user", {"e"}),
        ("select window(at, '1 minute').end as e, count(*) n from views group by window(at, '1 minute')", {"e"}),
        ("select window(at, '1 minute') as w, window(at, '1 minute').end as e from views group by all", {"e"}),
        ("select window(at, '1 minute') as w, window(at, '1 minute').end as e from views group by 1", {"e"}),
        ("select window.start as s, count(*) n from views group by window(at, '1 minute')", set()),
        ("select window.end as e, count(*) n from bare group by window(at, '1 minute')", set()),
    ],
)
def test_the_end_of_a_window_in_sql(sql: str, marks: set[str]) -> None:
    sink = "sinks: {o: {from: s, topic: o, mode: update}}\n" if "session" not in sql else TOPIC
    pipeline = sound(f'{HEAD}steps:\n  s: {{sql: "{sql}"}}\n{sink}')
    assert Streams.of(pipeline, build_graph(pipeline)).watermarks["s"] == marks


HOURS = "select user, window, count(*) n from views group by user, window(at, '1 hour')"
NAMED = "select user, window(at, '1 hour') as y, count(*) n from views group by %s"
ENDED = "select user, session_window as w, count(*) n from views group by user, session_window(at, '1 hour')"


@pytest.mark.parametrize(
    ("windows", "sql", "marks"),
    [
        (HOURS, "select window_time(window) as t, n from w", {"t"}),
        (HOURS, "select window_time(x.v) as t, n from (select window as v, n from w) x", {"t"}),
        (ENDED, "select window_time(w) as t, user from w", {"t"}),
        (NAMED % "1, 2", "select window_time(y) as t, n from w", {"t"}),
        (NAMED % "all", "select window_time(y) as t, n from w", {"t"}),
        (NAMED % "user, y", "select window_time(y) as t, n from w", {"t"}),
        (NAMED.replace("views", "bare") % "1, 2", "select window_time(y) as t, n from w", set()),
        (HOURS.replace("views", "bare"), "select window_time(window) as t, n from w", set()),
        (HOURS, f"select window_time(window) as t, n from ({HOURS})", {"t"}),
        (HOURS, f"with x as (select window_time(w) as t from ({ENDED})) select t as u from x", {"u"}),
    ],
)
def test_the_time_of_a_window_that_was_selected_is_event_time(windows: str, sql: str, marks: set[str]) -> None:
    sink = TOPIC if "session" in windows + sql else "sinks: {o: {from: s, topic: o, mode: update}}\n"
    pipeline = sound(f'{HEAD}steps:\n  w: {{sql: "{windows}"}}\n  s: {{sql: "{sql}"}}\n{sink}')
    assert Streams.of(pipeline, build_graph(pipeline)).watermarks["s"] == marks


def test_sessions_are_drawn_and_have_a_fingerprint() -> None:
    pipeline = sound(f"{HEAD}steps:\n{SESSIONS}{TOPIC}")
    assert [each.detail for each in lineage_of(pipeline) if each.name == "s"] == [
        "aggregate by user, sessions with a gap of 30 minutes"
    ]
    facts = Reader(pipeline, build_graph(pipeline), {}, {}).read().flows["s"].facts
    assert facts["step s"] == "sessions with a gap of 30 minutes of at, by user: count(*)"


PAIRS = HEAD + (
    '  clicks: {topic: clicks, schema: "user STRING, at TIMESTAMP", watermark: {column: at, delay: 1 minute}}\n'
    '  other: {topic: other, schema: "user INT, at TIMESTAMP", watermark: {column: at, delay: 1 minute}}\n'
    "steps:\n"
    "  v: {from: views, by: [user], window: {column: at, gap: 30 minutes}, aggregate: {n: count(*)}}\n"
    "  c: {from: clicks, by: [user], window: {column: at, gap: 5 minutes}, aggregate: {m: count(*)}}\n"
    "  i: {from: other, by: [user], window: {column: at, gap: 5 minutes}, aggregate: {m: count(*)}}\n"
)
NEAR = "c.window_end between v.window_end and v.window_end + interval 1 hour"
BOTH = "v.user, v.window_start as s, c.window_start as t"
NEXT = "d.user = c.user and d.window_end between c.window_end and c.window_end + interval 1 hour"
THREE = f"{BOTH}, d.window_start as u"
THIRD = f"d.user = c.user and {NEAR.replace('c.', 'd.')}"


@pytest.mark.parametrize(
    ("sql", "key", "missing"),
    [
        (f"select {BOTH}, n, m from v join c on v.user = c.user and {NEAR}", "[user, s]", "window"),
        (f"select {BOTH}, n, m from v join c on v.user = c.user and {NEAR}", "[user, s, t]", None),
        (f"select {BOTH}, n, m from v left join c on v.user = c.user and {NEAR}", "[user, s, t]", None),
        (f"select {BOTH}, c.user as u, n, m from v left join c on v.user = c.user and {NEAR}", "[u, s, t]", "user"),
        (f"select c.user, v.window_start as s, c.window_start as t from v right join c on v.user = c.user and {NEAR}",
         "[user, s, t]", None),
        (f"select {BOTH}, n, m from v join c on v.window_end = c.window_end", "[user, s, t]", "user"),
        (f"select {BOTH}, n from v join c on v.window_end = c.window_end and v.user = c.user", "[user, s]", "window"),
        (f"select {BOTH}, n from v join c on v.window_start = c.window_start and v.user = c.user", "[user, s]", None),
        ("select user, window_end, n, m from v join c using (user, window_end)", "[user, window_end]", None),
        (f"select {BOTH}, n, m from v join c using (user, window_end)", "[user, s]", "window"),
        ("select user, window_end as e, v.window_start as s from v join c using (user, window_end)", "[user, e]", None),
        (f"select {BOTH.replace('c.', 'i.')} from v join i on v.user = i.user and v.window_end = i.window_end",
         "[user, s, t]", None),
        ("select i.user, v.window_end as s from v join i on v.user = i.user and v.window_end = i.window_end",
         "[user, s]", "user"),
        (f"select {BOTH} from v, c where v.user = c.user and {NEAR}", "[user, s, t]", None),
        (f"select {BOTH} from v, c where (v.user = c.user and {NEAR})", "[user, s]", "window"),
        (f"select {BOTH} from v join c on (v.user = c.user and {NEAR}) and n > 0", "[user, s, t]", None),
        (f"select {BOTH} from v join c on v.user = c.user and {NEAR} and n > 0", "[user, s]", "window"),
        (f"select {THREE} from v join c on v.user = c.user and {NEAR} join c d on {THIRD}", "[user, s, t, u]", None),
        (f"select {THREE} from v join c on v.user = c.user and {NEAR} join c d on {THIRD}", "[user, s, t]", "window"),
        (f"select {THREE} from v join c on v.window_end = c.window_end join c d on {THIRD}", "[user, s, t, u]", "user"),
        (f"select {BOTH} from (v join c on v.user = c.user and {NEAR})", "[user, s]", "window"),
        (f"select {BOTH} from (v join c on v.user = c.user and {NEAR})", "[user, s, t]", None),
        (f"select {BOTH} from ((v) join c on v.user = c.user and {NEAR})", "[user, s, t]", None),
        (f"select {BOTH} from v join (c) on v.user = c.user and {NEAR}", "[user, s]", "window"),
        (f"select {BOTH} from v join (c) on v.user = c.user and {NEAR}", "[user, s, t]", None),
        (f"select {THREE} from v join (c join c d on {NEXT}) on v.user = d.user and {NEAR}", "[user, s, t, u]", None),
        (f"select {THREE} from v join (c join c d on {NEXT}) on v.user = d.user and {NEAR}", "[user, s, t]", "window"),
        ("select a.user, a.window_end as s from v a join v b on a.user = b.user and b.window_end > a.window_end",
         "[user, s]", "window"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("end", ["sinks: {o: {from: j, table: o, key: %s}}\n", "views: {o: {from: j, key: %s}}\n"])
def test_sessions_of_both_sides_of_a_join_identify_its_rows(end: str, sql: str, key: str, missing: str | None) -> None:
    lines = reported_for(f'  j: {{sql: "{sql}"}}\n{end % key}', head=PAIRS)
    found = [line for line in lines if line.startswith("error")]
    assert len(found) == (missing is not None), found
    assert missing is None or f"nothing in its key tells {missing} apart" in found[0]


ENDED_SQL = "select user, session_window.start as b, session_window.end as e, count(*) n from views "
GROUPS = "group by user, session_window(at, '1 minute')"


@pytest.mark.parametrize(
    ("sql", "is_refused"),
    [
        (f"{ENDED_SQL} {GROUPS} having session_window.end > session_window.start + interval 5 minutes", True),
        (f"{ENDED_SQL} {GROUPS} having e > b + interval 5 minutes", True),
        (f"{ENDED_SQL} {GROUPS} having count(*) > 1 and user <> 'x'", False),
        (f"{ENDED_SQL} where user <> 'x' {GROUPS}", False),
        (f"select * from ({ENDED_SQL} {GROUPS}) where e > b + interval 5 minutes", True),
        (f"with x as ({ENDED_SQL} {GROUPS}) select * from x where e > b + interval 5 minutes", True),
        (f"with x as ({ENDED_SQL} {GROUPS}), y as (select * from x) select e, sum(n) m from y group by e", True),
        (f"select user, e from ({ENDED_SQL} {GROUPS}) union all select user, at from views where user <> 'x'", False),
        (BY_SUBQUERY.split('"')[1].replace("from views", "from views where user <> 'x'"), False),
    ],
)
def test_sessions_are_not_filtered_in_the_query_that_makes_them(sql: str, is_refused: bool) -> None:
    for engine in (None, Engine.BATCH):
        found = [
            line for line in errors(f'  s: {{sql: "{sql}"}}\n', TOPIC, engine) if "in the query that makes" in line
        ]
        assert len(found) == is_refused, found


@pytest.mark.parametrize(
    "steps",
    [
        f'  w: {{sql: "{ENDED}"}}\n  s: {{sql: "select w, count(*) n from w group by w"}}\n',
        f'  w: {{sql: "{ENDED}"}}\n  s: {{from: w, by: [w], aggregate: {{n: count(*)}}}}\n',
        f'  s: {{sql: "select e, max(n) m from ({ENDED_SQL} {GROUPS}) group by e"}}\n',
    ],
)
def test_a_refused_group_of_sessions_is_one_error(steps: str) -> None:
    assert len(errors(steps, TOPIC)) == 1, errors(steps, TOPIC)


def test_sessions_are_not_recommended_to_group_by() -> None:
    grouped = f'  w: {{sql: "{ENDED}"}}\n  s: {{sql: "select user, count(*) n from w group by user"}}\n'
    (found,) = errors(grouped, TOPIC)
    assert "have event time, by window(w, '10 minutes')" in found
