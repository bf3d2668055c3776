"""Groups by event time in mode append: they are refused if the event time may be null, with a way out that helps."""

from __future__ import annotations

import pytest

from tests.pipelines.definition.definitions import reported_for
from tests.pipelines.planning.test_query_checks import HEAD

GROUPS = "{from: %s, by: [id, at], aggregate: {n: count(*)}}"
MARKED = "watermark: {column: at, delay: 1 minute}"
REQUIRED = (
    '  z: {topic: z, schema: "id BIGINT, at TIMESTAMP NOT NULL", watermark: {column: at, delay: 1 minute}}\n'
    '  y: {topic: y, schema: "id BIGINT, at TIMESTAMP NOT NULL, till TIMESTAMP NOT NULL", '
    "watermark: {column: at, delay: 1 minute}}\n"
    '  pay: {topic: pay, schema: "id BIGINT, paid_at TIMESTAMP", watermark: {column: paid_at, delay: 1 minute}}\n'
    '  r: {topic: r, schema: "id BIGINT, at TIMESTAMP NOT NULL, seen TIMESTAMP"}\n'
    '  raw: {topic: raw, schema: "id BIGINT, ts STRING", watermark: {column: _timestamp, delay: 1 minute}}\n'
    '  text: {topic: text, schema: "id BIGINT, ts STRING", columns: {et: to_timestamp(ts)}, '
    "watermark: {column: et, delay: 1 minute}}\n"
    '  copy: {topic: copy, schema: "id BIGINT, at TIMESTAMP", columns: {et: "coalesce(at, _timestamp)"}, '
    "watermark: {column: et, delay: 1 minute}}\n"
    '  f: {files: {path: f, format: json}, stream: true, schema: "id BIGINT, at TIMESTAMP NOT NULL", '
    "watermark: {column: at, delay: 1 minute}}\n"
    '  d: {topic: d, tombstones: rows, schema: "id BIGINT, at TIMESTAMP NOT NULL", '
    "watermark: {column: at, delay: 1 minute}}\n"
    '  arr: {topic: arr, schema: "id BIGINT, items ARRAY<STRUCT<at: TIMESTAMP, x: BIGINT>>"}\n'
    '  cdc: {topic: cdc, schema: "id BIGINT, at TIMESTAMP NOT NULL, after STRUCT<id: BIGINT, at: TIMESTAMP>"}\n'
)
WINDOWS = "w: {from: a, by: [id], window: {column: at, size: 1 minute}, aggregate: {n: count(*)}}"
BY_SQL = "w: {sql: \"select id, window.end as e, count(*) n from a group by id, window(at, '1 minute')\"}"
NEAR = "z.at between pay.paid_at - interval 1 hour and pay.paid_at"
FINAL = [
    "s: {sql: 'select distinct id, at from a where at is not null'}",
    "q: {sql: 'select id, at from a where not at is null'}, s: {sql: 'select distinct id, at from q'}",
    f"q: {{sql: select * from a, expect: {{t: {{check: at is not null, otherwise: drop}}}}}}, s: {GROUPS % 'q'}",
    f"s: {GROUPS % 'z'}",
    "s: {sql: 'select distinct id, at from z union all select distinct id, at from a where at is not null'}",
    "s: {from: a, by: [id], window: {column: at, size: 1 minute}, aggregate: {n: count(*)}}",
    "s: {sql: \"select id, window.end e from a group by id, window(at, '1 minute')\"}",
    f"{WINDOWS}, s: {{from: w, by: [window_end], aggregate: {{m: sum(n)}}}}",
    f"{WINDOWS}, s: {{sql: 'select window_start, window_end, max(n) m from w group by window_start, window_end'}}",
    f"{BY_SQL}, s: {{sql: 'select e, sum(n) m from w group by e'}}",
    f"{BY_SQL}, s: {{sql: 'select distinct q.* from (select e as f, n from w) q'}}",
    "s: {from: raw, by: [id, _timestamp], aggregate: {n: count(*)}}",
    "s: {sql: 'select distinct id, _timestamp from raw'}",
    (
        "q: {sql: 'select id, at from r', watermark: {column: at, delay: 1 minute}}, "
        "s: {sql: 'select distinct id, at from q'}"
    ),
    f"s: {{sql: 'select z.at, count(*) n from z join pay on z.id = pay.id and {NEAR} group by z.at'}}",
    "s: {sql: 'select distinct id, et from copy'}",
    "s: {sql: \"select distinct id, at from a where (at > timestamp'2020-01-01' and id > 0)\"}",
    "s: {sql: 'select a.at, count(*) n from a join b on a.id = b.id and a.at = b.at group by a.at'}",
    "s: {sql: 'select at, count(*) n from a join b using (id, at) group by at'}",
    "s: {sql: 'select distinct x.id, x.at from (a x left semi join b on x.id = b.id and x.at = b.at)'}",
    "s: {sql: 'select id, at, count(*) n from a group by id, at having isnotnull(at)'}",
    "s: {sql: 'with q as (select id, at as t from a where at is not null) select distinct id, t from q'}",
    "q: {from: z, deduplicate: {key: [id, at]}}, s: {sql: 'select distinct q.* except (id) from q'}",
    "p: {from: [z], python: 'json:loads'}, s: {sql: 'select distinct * from p where at is not null'}",
    ("q: {from: a, join: {stream: pay, on: [id], within: 1 minute}}, s: {from: q, by: [at], aggregate: {n: count(*)}}"),
    "s: {sql: 'select id, at from z union select id, at from b where at is not null'}",
    "s: {sql: 'select z.at, count(*) n from z left join y on z.id = y.id and z.at = y.at group by z.at'}",
    (
        "w: {sql: \"select id, window_time(window) as at, count(*) n from z group by id, window(at, '1 minute')\"}, "
        "s: {sql: 'select at, sum(n) m from w group by at'}"
    ),
    (
        "w: {sql: \"select id, window, count(*) n from z group by id, window(at, '1 minute')\"}, "
        "v: {sql: 'select n, window_time(window) as at from w'}, s: {sql: 'select distinct at from v'}"
    ),
    (
        "w: {sql: \"select id, window, count(*) n from a group by id, window(at, '1 minute')\"}, "
        "v: {sql: 'select n, window_time(window) as t from w'}, s: {sql: 'select t, sum(n) m from v group by t'}"
    ),
    f"q: {{sql: select inline(items) from arr, {MARKED}}}, s: {{sql: 'select distinct at from q where isnotnull(at)'}}",
    f"q: {{sql: select c.* from cdc c, {MARKED}}}, s: {{sql: 'select distinct at from q'}}",
    "s: {sql: 'select at, id, count(*) n from z group by at, rollup(id)'}",
    "s: {sql: 'select at, id, count(*) n from z group by at, rollup(at, id)'}",
    "s: {sql: 'select at, id, count(*) n from z group by grouping sets ((at, id), (at))'}",
    "s: {sql: 'select at, id, count(*) n from z group by at, id grouping sets ((id, at), (at))'}",
    "s: {sql: \"select window.end e, id, count(*) n from z group by window(at, '1 minute'), cube(id)\"}",
    "s: {sql: \"select date(at) d, count(*) n from z group by window(at, '1 minute'), rollup(date(at))\"}",
]
WITH_NULL = [
    f"s: {GROUPS % 'a'}",
    "s: {sql: 'select distinct id, at from a'}",
    "s: {sql: 'select id, at, count(*) n from a group by id, at'}",
    f"q: {{sql: select * from a, expect: {{t: at is not null}}}}, s: {GROUPS % 'q'}",
    "s: {sql: 'select distinct id, at from z union all select distinct id, at from a'}",
    (
        "q: {sql: 'select id, seen from r', watermark: {column: seen, delay: 1 minute}}, "
        "s: {sql: 'select distinct id, seen from q'}"
    ),
    "s: {sql: 'select distinct id, et from text'}",
    "s: {sql: \"select distinct id, at from a where at > timestamp'2020-01-01' or id > 0\"}",
    "p: {from: [z], python: 'json:loads'}, s: {sql: 'select distinct * from p'}",
    (
        "q: {from: a, join: {stream: pay, on: [id], within: 1 minute, how: left}}, s: {from: q, by: [at], "
        "aggregate: {n: count(*)}}"
    ),
    "s: {sql: 'select distinct id, at from a union all select distinct id, at from b where at is not null'}",
    "s: {sql: 'select id, at from a union select id, at from b where at is not null'}",
    "s: {sql: 'select a.at, count(*) n from ((a) join t on a.id = t.id) group by a.at'}",
    "s: {sql: 'select distinct id, at from a where at is not null or id = 1'}",
    "s: {sql: 'select distinct id, at from a where at is not true'}",
    "s: {sql: 'select id, at, at is not null as ok, count(*) n from a group by id, at'}",
    f"q: {{sql: select * from b where at is not null}}, s: {GROUPS % 'a'}",
    (
        f"q: {{sql: select * from a, expect: {{t: {{check: at is not null or id = 1, otherwise: drop}}}}}}, "
        f"s: {GROUPS % 'q'}"
    ),
    f"s: {GROUPS % 'f'}",
    f"s: {GROUPS % 'd'}",
    "s: {sql: 'select y.at, count(*) n from z left join y on z.id = y.id and z.at = y.at group by y.at'}",
    "s: {sql: 'select z.at, count(*) n from z full join y on z.id = y.id and z.at = y.at group by z.at'}",
    "s: {sql: 'select distinct * from (select id, at from z union all select id, paid_at from pay) q'}",
    (
        "q: {sql: 'select id, at, till from y union all select id, at, at from a'}, "
        "s: {sql: 'select distinct id, at from q'}"
    ),
    f"q: {{sql: select inline(items) from arr, {MARKED}}}, s: {{sql: 'select distinct at from q'}}",
    f"q: {{sql: select c.after.* from cdc c, {MARKED}}}, s: {{sql: 'select distinct at from q'}}",
    (
        "p: {from: [r], python: 'json:loads'}, "
        f"q: {{sql: 'select id, window.end as at from p', {MARKED}}}, s: {{sql: 'select distinct at from q'}}"
    ),
    "s: {sql: 'select at, id, count(*) n from z group by rollup(at, id)'}",
    "s: {sql: 'select at as t, id, count(*) n from z group by cube((t, id))'}",
    "s: {sql: 'select at, id, count(*) n from z group by id, at with rollup'}",
    "s: {sql: 'select at, id, count(*) n from z group by grouping sets ((at, id), (id))'}",
    "s: {sql: 'select at, id, count(*) n from z group by grouping sets (rollup(at, id), (at))'}",
    "s: {sql: 'select at, id, count(*) n from z group by at, id grouping sets ((at, id), (id))'}",
    "s: {sql: \"select window.end e, id, count(*) n from z group by rollup(window(at, '1 minute'), id)\"}",
]


@pytest.mark.parametrize(
    ("steps", "is_refused"), [*((each, False) for each in FINAL), *((each, True) for each in WITH_NULL)]
)
def test_a_group_of_event_time_that_is_null_is_never_final(steps: str, is_refused: bool) -> None:
    lines = reported_for(f"steps: {{{steps}}}\nsinks: {{o: {{from: s, topic: o}}}}\n", head=HEAD + REQUIRED)
    found = [line for line in lines if line.startswith("error")]
    assert ["no watermark passes the group of null" in line for line in found] == [True] * is_refused, lines


@pytest.mark.parametrize(
    ("steps", "said"),
    [
        (f"s: {GROUPS % 'a'}", "declare at as NOT NULL in the schema of its source, or add WHERE at IS NOT NULL in"),
        ("s: {sql: 'select distinct id, at as seen from a'}", "or add WHERE at IS NOT NULL to the SELECT whose"),
        ("s: {sql: 'select distinct id, et from text'}", "; add WHERE et IS NOT NULL to the SELECT whose"),
        (f"s: {GROUPS % 'f'}", "; add WHERE at IS NOT NULL in a SQL step before it"),
        (f"s: {GROUPS % 'd'}", "; add WHERE at IS NOT NULL in a SQL step before it"),
        ("s: {sql: 'select y.at, count(*) n from z left join y on z.id = y.id and z.at = y.at group by y.at'}",
         "; add WHERE at IS NOT NULL to the SELECT whose"),
        ("s: {sql: 'select pay.paid_at, count(*) n from z join pay on z.id = pay.id group by pay.paid_at'}",
         "declare paid_at as NOT NULL"),
        ("s: {sql: 'select at, id, count(*) n from z group by rollup(at, id)'}",
         "; group by at or its window outside ROLLUP, CUBE and GROUPING SETS: GROUP BY at, ROLLUP(…)"),
    ],
)  # fmt: skip
def test_the_way_out_of_a_group_of_null_helps(steps: str, said: str) -> None:
    lines = reported_for(f"steps: {{{steps}}}\nsinks: {{o: {{from: s, topic: o}}}}\n", head=HEAD + REQUIRED)
    found = [line for line in lines if "no watermark passes the group of null" in line]
    assert [said in line for line in found] == [True], lines
