"""Conditions of joins of streams by which Spark would remove rows too early, or never."""

from __future__ import annotations

import re

import pytest

from odradek.pipelines.definition.vocabulary import Engine
from tests.pipelines.definition.definitions import reported_for

HEAD = """
pipeline: p
sources:
  a: {topic: a, schema: "id BIGINT, n BIGINT, due TIMESTAMP, at TIMESTAMP", watermark: {column: at, delay: 1 minute}}
  b:
    topic: b
    schema: "id BIGINT, m DOUBLE, ref TIMESTAMP, seen TIMESTAMP"
    watermark: {column: seen, delay: 1 minute}
  c: {topic: c, schema: "id BIGINT, at TIMESTAMP, c_at TIMESTAMP", watermark: {column: c_at, delay: 1 minute}}
  bare: {topic: bare, schema: "id BIGINT, ref TIMESTAMP"}
"""
OUT = "sinks: {o: {from: s, topic: o}}\n"
BOUND = "b.seen between a.at and a.at + interval 1 hour"
NO_BOUND, NO_EQUALITY, ONE_TIME = "no bound of event time", "without an equality", "is event time"
EARLY, NUMBER = "before all that match have arrived", "with a number"


def errors(sql: str, engine: Engine | None = None) -> list[str]:
    lines = reported_for(f'steps: {{s: {{sql: "{sql}"}}}}\n{OUT}', head=HEAD, engine=engine)
    return [line for line in lines if line.startswith("error")]


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("select a.id from a join b on a.id = b.id or a.n = b.m", NO_EQUALITY),
        ("select a.id from a join b on a.id = a.n", NO_EQUALITY),
        ("select a.id from a join b on a.id + b.id = a.n", NO_EQUALITY),
        (f"select a.id from a left join b on {BOUND} where a.id = b.id", NO_EQUALITY),
        ("select a.id from a left join b on a.id = b.id and b.seen >= a.at", NO_BOUND),
        ("select a.id from a left semi join b on a.id = b.id and b.seen >= a.at", NO_BOUND),
        ("select a.id from a right join b on a.id = b.id and b.seen <= a.at + interval 1 hour", NO_BOUND),
        ("select a.id from a full join b on a.id = b.id and b.seen >= a.at", NO_BOUND),
        ("select a.id from a full join b on a.id = b.id and b.seen <= a.at + interval 1 hour", NO_BOUND),
        (f"select a.id from a left join b on a.id = b.id where {BOUND}", NO_BOUND),
        (f"select a.id from a left join b on a.id = b.id and ({BOUND} or a.n = 1)", NO_BOUND),
        (f"select a.id from a left join b on a.id = b.id and not ({BOUND})", NO_BOUND),
        ("select a.id from a left join b on a.id = b.id and b.seen < a.at + interval 1 month", NO_BOUND),
        ("select a.id from a left join b on a.id = b.id and b.ref between a.at and a.at + interval 1 hour", NO_BOUND),
        ("select a.id from a left join b on a.id = b.id and to_date(a.at) = to_date(b.seen)", NO_BOUND),
        ("select a.id from a left join b on a.id = b.id and unix_millis(b.seen) < unix_millis(a.at) + 5", NO_BOUND),
        ("select a.id from a left join b on a.id = b.id and b.seen - a.at <= interval 10 minutes", NO_BOUND),
        ("select a.id from a join b on a.id = b.id and a.at = b.ref", ONE_TIME),
        (f"select a.id from a join b on a.id = b.id and b.ref = a.at and {BOUND}", ONE_TIME),
        ("select a.id from a join b on a.id = b.id where a.at = b.ref", ONE_TIME),
        ("select a.id from a join bare b on a.id = b.id and a.at = ref", ONE_TIME),
        ("select c_at from a join c using (id, at)", ONE_TIME),
        ("select x.id from (select id, at as t from a) x join b on x.id = b.id and x.t = b.ref", ONE_TIME),
        ("select a.id, a.at from a join b on a.id = b.id and b.seen <= a.due", EARLY),
        ("select a.* from a join b on a.id = b.id and b.seen <= a.due", EARLY),
        ("select a.id from a join b on a.id = b.id and seen between a.at and due + interval 1 day", EARLY),
        ("select at from a, b where a.id = b.id and b.seen - interval 1 day < a.due", EARLY),
        (f"select a.id from a left join b on a.id = b.id and a.n > 3 and {BOUND}", NUMBER),
        (f"select a.id from a left join b on a.id = b.id and 3 <= a.n + 1 and {BOUND}", NUMBER),
        (f"select a.id from a right join b on a.id = b.id and b.m between 0.5 and 2 and {BOUND}", NUMBER),
        (f"select a.id from a full join b on a.id = b.id and b.m > 0 and {BOUND}", NUMBER),
        (f"select a.id from a left join b on a.id = b.id and a.n > '3' and {BOUND}", NUMBER),
        (f"select a.id from a left join b on a.id = b.id and cast(a.n as int) > int(' 3') and {BOUND}", NUMBER),
        (f"select a.id from a left join b on a.id = b.id and not (a.n <= 3) and {BOUND}", NUMBER),
        ("select a.id from a left join b on a.id = b.id and date(b.seen) <= date(a.at)", NO_BOUND),
        ("with x as (select * from a) select id from x left join b using (id) where x.n > 3", NO_BOUND),
        (f"with a as (select * from a) select a.id from a left join b on a.id = b.id and n > 3 and {BOUND}", NUMBER),
    ],
)  # fmt: skip
def test_a_condition_that_spark_would_apply_to_other_rows_is_refused(sql: str, said: str) -> None:
    assert [line for line in errors(sql) if said in line and "; " in line], errors(sql)
    assert errors(sql, Engine.BATCH) == []


@pytest.mark.parametrize(
    "sql",
    [
        "select a.id from a left join b on a.id = b.id and b.seen <= a.at + interval 1 hour",
        "select a.id from a right join b on a.id = b.id and b.seen >= a.at",
        "select a.id from a left join b on a.id = b.id and a.at > b.seen - interval 1 hour",
        "select a.id from a left join b on a.id = b.id and a.at = b.seen",
        f"select a.id from a left join b on a.id = b.id and {BOUND} and b.seen <= a.due",
        f"select a.id from a join b on a.id = b.id and b.seen <= a.due and {BOUND}",
        "select a.id, a.at from a join b on a.id = b.id and b.seen > a.due",
        "select a.id from a join b on a.id = b.id and b.seen <= a.due",
        "select bare.id from bare join b on bare.id = b.id and b.seen <= bare.ref",
        f"select a.id from a join b on a.id = b.id and a.at + interval 0 seconds = b.ref and {BOUND}",
        f"select a.id from a left join b on a.id = b.id and b.m > 3 and {BOUND}",
        f"select a.id from a left join b on a.id = b.id and a.n < 3 and {BOUND}",
        f"select a.id from a left join b on a.id = b.id and not (a.n > 3) and not a.n between 3 and 5 and {BOUND}",
        f"select a.id from a left join b on a.id = b.id and string(a.n) > '3' and a.due > '2026-1-1' and {BOUND}",
        "select a.id from a left join b on a.id = b.id and not (b.seen > a.at + interval 1 hour)",
        f"select a.id from a left join b on a.id = b.id and a.n = 3 and {BOUND}",
        f"select a.id from a left semi join b on a.id = b.id and a.n > 3 and {BOUND}",
        "select a.id from a join b on a.id = b.id and a.n > 3",
        f"select a.id from a left join b on a.id = b.id and a.n > b.m and {BOUND}",
        f"select a.id from (select id, at from a) a left join (select * from b) b on a.id = b.id and {BOUND}",
        "with x as (select id, at as t from a) select x.id from x left join b on x.id = b.id and x.t >= b.seen",
        "select a.id from a join (select id, window(at, '1 hour').end as t from c) y on a.id = y.id and a.at = y.t",
    ],
)
def test_a_condition_by_which_spark_keeps_rows_that_may_match_is_accepted(sql: str) -> None:
    assert errors(sql) == []


def test_a_column_to_join_on_is_event_time_of_both_sides_or_of_none() -> None:
    steps = "steps: {s: {from: a, join: {stream: c, on: [id, at], within: 1 hour}}}\n" + OUT
    found = [line for line in reported_for(steps, head=HEAD) if line.startswith("error")]
    assert [line for line in found if "joins by 'at', which is event time of 'a' and not of 'c'" in line], found
    assert [each for each in reported_for(steps, head=HEAD, engine=Engine.BATCH) if each.startswith("error")] == []


PAIRS = "select a.id, a.at, b.seen from a join b on a.id = b.id"
HOURS = "g: {from: s, by: [id], window: {column: at, size: 1 hour}, aggregate: {n: count(*)}}"
HOURS_OF_S = "'select id, window(at, ''1 hour'') as w from s'"
PASSED = (
    "r: {sql: select * from s}, g: {from: r, by: [id], window: {column: at, size: 1 hour}, aggregate: {n: count(*)}}"
)
LOOSE = "of a join of streams whose condition has no bound for it"


@pytest.mark.parametrize(
    ("sql", "behind", "is_refused"),
    [
        (PAIRS, HOURS, True),
        (PAIRS.replace(", b.seen", ""), "g: {sql: 'select s.*, c.c_at from s join c on s.id = c.id'}", True),
        (PAIRS.replace(", b.seen", ""), "g: {sql: 'select distinct * from s where at is not null'}", True),
        (PAIRS, PASSED, True),
        (f"{PAIRS} and b.seen >= a.at", HOURS, True),
        (f"{PAIRS} and b.seen <= a.at + interval 1 hour", HOURS, False),
        (f"{PAIRS} and {BOUND}", PASSED, False),
        (PAIRS, "g: {sql: 'select id, at, count(*) n from s where at is not null group by id, at'}", True),
        (PAIRS, "g: {sql: 'select s.id, c.c_at from s join c on s.id = c.id and c.c_at = s.at'}", True),
        (PAIRS, "g: {sql: 'select id from s'}", False),
        (PAIRS, "g: {sql: 'select id, at from s union select id, c_at from c'}", True),
        (PAIRS, "g: {sql: 'select id, c_at from c union select id, at from s'}", True),
        (PAIRS, "g: {sql: 'select id, at from s union all select id, c_at from c'}", False),
        (PAIRS, "g: {sql: 'select s.* except (seen), c.c_at from s join c on s.id = c.id'}", True),
        (PAIRS, "g: {sql: 'select distinct * except (seen) from s where at is not null'}", True),
        (
            f"{PAIRS} and b.seen >= a.at",
            "g: {sql: 'select distinct * except (at) from s where seen is not null'}",
            False,
        ),
        (PAIRS, "g: {sql: 'select w, count(*) n from (select *, window(at, ''1 hour'') w from s) group by w'}", True),
        (PAIRS, f"k: {{sql: {HOURS_OF_S}}}, g: {{sql: 'select w, count(*) n from k group by w'}}", True),
        (PAIRS, f"k: {{sql: {HOURS_OF_S}}}, g: {{sql: 'select window_time(w) t from k'}}", False),
        (PAIRS, "r: {sql: 'select id from s'}, g: {sql: 'select r.id, c.c_at from r join c on r.id = c.id'}", False),
        ("select b.id, b.seen as at from a join b on a.id = b.id and b.seen >= a.at", HOURS, False),
        ("select a.id, a.at from a join b on a.id = b.id join c on c.id = a.id", "g: {sql: select id from s}", True),
        ("select a.id from a join b on a.id = b.id join c on c.id = a.id", "g: {sql: select id from s}", False),
    ],
)
def test_a_step_by_event_time_needs_a_bound_in_the_join_before_it(sql: str, behind: str, is_refused: bool) -> None:
    text = f"steps: {{s: {{sql: '{sql}'}}, {behind}}}\nsinks: {{o: {{from: g, topic: o}}}}\n"
    found = [line for line in reported_for(text, head=HEAD) if line.startswith("error") and "may be null" not in line]
    assert bool(found) is is_refused, found
    assert all(LOOSE in line for line in found), found


LATER = "a join b on a.id = b.id and b.seen >= a.at join c on c.id = a.id"  # without a bound of a.at


@pytest.mark.parametrize(
    ("sql", "is_refused"),
    [
        (f"select a.id from {LATER}", False),
        (f"select a.id, c.at from {LATER}", False),
        (f"select a.id from {LATER} where b.seen > a.at + interval 1 second", False),
        (f"select a.id from {LATER} and c.c_at > a.at", True),
        (f"select a.id from {LATER.replace('on c.id = a.id', 'using (id, at)')}", True),
        (f"select date(a.at) from {LATER}", True),
        (f"select a.* from {LATER}", True),
        (f"select b.* from {LATER}", False),
        (f"select a.* except (at) from {LATER}", False),
        (f"select id from (select a.* from {LATER})", False),
        (f"select id, at from (select a.* from {LATER})", True),
        (f"with i as ({PAIRS}) select i.id from i join c on c.id = i.id", False),
        (f"with i as ({PAIRS}) select i.id, i.at from i join c on c.id = i.id", True),
        (f"select id from (select a.id, a.at t from {LATER})", False),
        (f"select id, t from (select a.id, a.at t from {LATER})", True),
        (f"select a.id, a.at from {LATER} where c.c_at <= a.at + interval 1 hour", True),
        (f"select a.id, a.at from {LATER} where c_at <= a.at + interval 1 hour", True),
        (f"select a.id, a.at from {LATER} where b.seen <= a.at + interval 1 hour and c_at > a.at", False),
        ("select a.id from a, b, c where a.id = c.id and b.id = c.id", False),
    ],
)
def test_a_join_works_by_event_time_that_is_read_above_its_side(sql: str, is_refused: bool) -> None:
    found = errors(sql)
    assert [LOOSE in line for line in found] == [True] * is_refused, found


NEAR = f"{PAIRS} and {BOUND}"
OTHER = NEAR.replace("b.seen from", "b.seen + interval 0 seconds as copy from")


@pytest.mark.parametrize(
    "behind",
    [
        "g: {from: s, deduplicate: {key: [id, at, seen]}}",
        "g: {from: s, by: [seen], window: {column: at, size: 1 hour}, aggregate: {n: count(*)}}",
        "g: {sql: 'select distinct id, at, seen from s where at is not null and seen is not null'}",
        "g: {sql: 'select at, seen, count(*) n from s where at is not null and seen is not null group by at, seen'}",
    ],
)
def test_a_step_works_by_one_column_of_event_time(behind: str) -> None:
    text = f"steps: {{s: {{sql: '{NEAR}'}}, {behind}}}\nsinks: {{o: {{from: g, topic: o}}}}\n"
    found = [line for line in reported_for(text, head=HEAD) if line.startswith("error") and "may be null" not in line]
    assert len(found) == 1, found
    assert re.search(r"several columns of event time in its state.*: (window of |s.)?at and (s.)?seen;", found[0])
    text = f"steps: {{s: {{sql: '{OTHER}'}}, {behind.replace('seen', 'copy')}}}\nsinks: {{o: {{from: g, topic: o}}}}\n"
    found = [line for line in reported_for(text, head=HEAD) if line.startswith("error")]
    assert [line for line in found if "may be null" not in line] == []


TWO = f"a join b on a.id = b.id and {BOUND}"
THREE = f"{TWO} join c on c.id = a.id and c.c_at > a.at"
LEFT = f"{TWO} left join c on c.id = a.id and c.c_at < a.at"
COPIES = "(select id, at, at as copy from a) x"


@pytest.mark.parametrize(
    ("sql", "times"),
    [
        (f"select a.id, a.at, b.seen, c.c_at from {THREE}", "left at seen"),
        (f"select a.id, date(b.seen) d from {THREE}", "left at seen"),
        (f"select * from (select a.at, b.seen from {THREE})", "left at seen"),
        (f"select a.at, b.* except (id) from {THREE}", "left at seen"),
        (f"select a.id from {THREE} and c.c_at > b.seen", "left at seen"),
        (f"select a.id from {THREE} where c.c_at > b.seen", "left at seen"),
        (f"select a.id from {LEFT} and b.seen > a.due + interval 1 day", "left at seen"),
        (f"select a.at, b.seen from c join ({TWO}) on a.id = c.id", "right at seen"),
        (f"select c_at, seen from c join (select a.id, a.at t, b.seen from {TWO}) x using (id)", ""),
        (f"select x.at, x.copy, b.m from {COPIES} join b on x.id = b.id", "left at copy"),
        (f"select b.id from b join {COPIES} on x.id = b.id and b.seen > x.at and b.seen > x.copy", "right at copy"),
        (f"select b.id from b left semi join {COPIES} on x.id = b.id and b.seen > x.at", ""),
        (f"select a.id, a.at, b.m, c.c_at from {THREE}", ""),
        (f"select a.id, a.at from {THREE} where b.seen > a.at + interval 1 second and b.seen > a.due", ""),
        (f"select * from (select a.id i, a.at, b.seen + interval 0 seconds t from {TWO}) join c on i = c.id", ""),
        (f"select id, at from (select a.id, a.at, b.seen from {THREE})", ""),
        ("select id, at, n, c_at from a join (select id, seen as at from b) using (id, at) join c using (id)", ""),
    ],
)
def test_a_side_of_a_join_has_one_column_of_event_time_in_its_state(sql: str, times: str) -> None:
    found = [line for line in errors(sql) if "several columns of event time" in line]
    said = [re.search(r"the (left|right) side .*: (\w+) and (\w+);", line) for line in found]
    assert [" ".join(each.groups()) for each in said if each] == [times] * bool(times), errors(sql)


COUNTS = "select id, window%s, count(*) n from %s group by id, window(%s, '1 hour')"


@pytest.mark.parametrize("kind", ["join", "left join", "right join", "full join", "left semi join"])
@pytest.mark.parametrize("name", ["window", "w"])
def test_a_join_by_the_windows_of_two_steps_ends_both_sides(kind: str, name: str) -> None:
    alias = "" if name == "window" else f" as {name}"
    steps = (
        f'x: {{sql: "{COUNTS % (alias, "a", "at")}"}}, y: {{sql: "{COUNTS % (alias, "b", "seen")}"}}, '
        f"s: {{sql: 'select x.n from x {kind} y on x.id = y.id and x.{name} = y.{name}'}}"
    )
    found = reported_for(f"steps: {{{steps}}}\n{OUT}", head=HEAD)
    assert [line for line in found if "uses the source" not in line] == []
