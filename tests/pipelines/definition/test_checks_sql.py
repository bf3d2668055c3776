"""Problems of SQL, columns and types that are found without Spark."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

import pytest

from odradek.pipelines.definition.loading import load_yaml
from tests.pipelines.definition.definitions import OUT, SOURCE, errors, reported, warnings

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("select idd from rigs", "names the column 'idd', which does not exist; did you mean 'id'?"),
        (
            "select reading.presure from rigs",
            "names the column 'presure', which does not exist; did you mean 'pressure'?",
        ),
        ("select r.idd from rigs r", "names the column 'idd'"),
        ("select id from rigs where x = 1", "names the column 'x'"),
        ("select q.z from (select id from rigs) q", "names the column 'z', which does not exist; known columns: id"),
        ("with q as (select id from rigs) select at from q", "names the column 'at'"),
        ("select x from rigs union all select id from rigs", "names the column 'x'"),
        ("select r.id, name from rigs r join pumps p on r.id = p.idd", "names the column 'idd'"),
        ("selec id from rigs", "is invalid: SQL must start with SELECT; did you mean 'select'?"),
        ("select id from", "expected a table name after 'from'"),
        ("delete from rigs", "SQL must start with SELECT; did you mean 'select'?"),
        ("select agv(id) from rigs", "there is no function 'agv'; did you mean avg?"),
        ("select upper(reading) from rigs", "upper does not take STRUCT<pressure: DOUBLE, unit: STRING>"),
        ("select upper(id, 1) u from rigs", "upper is given 2 arguments; it takes 1"),
        ("select id, count(*) n from rigs", "'id' is neither grouped nor aggregated; add it to GROUP BY"),
        ("select id.x from rigs", "'x' is read as a field of id, which is BIGINT; only a STRUCT has fields"),
        ("select id from rigs where sum(id) > 1", "WHERE uses the aggregate function sum; use HAVING after GROUP BY"),
        ("select max(sum(id)) m from rigs", "max is applied to the aggregate function sum"),
        ("select id from rigs having count(*) > 1", "'id' is neither grouped nor aggregated"),
        ("select id from rigs where reading = 1", "STRUCT<pressure: DOUBLE, unit: STRING> and INT cannot be compared"),
        ("select id + reading as x from rigs", "'+' cannot be applied to BIGINT and STRUCT"),
        ("select id from rigs where id", "WHERE is given BIGINT, not a BOOLEAN"),
        ("select id from rigs union all select id, at from rigs", "UNION of a query with 1 columns and one with 2"),
        (
            "select at from rigs union all select reading from rigs",
            "column 1 of UNION is TIMESTAMP in one query and STR",
        ),
        (
            "select id from rigs join pumps on rigs.id = pumps.id",
            "the column 'id' is in rigs and in pumps; write rigs.id",
        ),
        ("select r.id from rigs r join pumps p on r.reading = p.name", "cannot be compared"),
        ("select explode(id) x from rigs", "explode does not take BIGINT; it takes an ARRAY or a MAP"),
        ("select count(*) n from rigs group by window(at, '1 month')", "window() does not take the length '1 month'"),
        (
            "select count(*) n from rigs group by window(at, interval 1 hour)",
            "does not take the length INTERVAL '1' HOUR",
        ),
        (
            "select count(*) n from rigs group by id, session_window(at, interval 1 hour)",
            "session_window() does not take",
        ),
        ("select count(*) n from rigs group by window(at, '1 hour', id)", "does not take the length id"),
        ("select count(*) n from rigs group by window(at, 'ten minutes')", "does not take the length 'ten minutes'"),
        ("select count(*) n from rigs group by window(at, '1.5 hours')", "does not take the length '1.5 hours'"),
        (
            "select count(*) n from rigs group by window(at, '1 hour', '2 hours')",
            "its slide, the second one, must be at",
        ),
        ("select count(*) n from rigs group by window(at, '0 seconds')", "its slide, the second one, must be at most"),
        (
            "select count(*) n from rigs group by window(at, '1 hour', '1 hour', '90 minutes')",
            "its start, the third one",
        ),
        (
            "select window(at, '1 hour') h, count(*) n from rigs group by 1, window(at, '1 minute')",
            "a SELECT has several windows, which Spark does not support",
        ),
        (
            "select window(r.at, '1 hour') h from rigs r join rigs q on r.id = q.id group by 1, window(q.at, '1 hour')",
            "a SELECT has several windows, which Spark does not support",
        ),
        (
            "select window(at, '1 hour') h from rigs r join rigs q using (at) group by 1, window(q.at, '1 hour')",
            "a SELECT has several windows, which Spark does not support",
        ),
        (
            "select window(at, '1 hour') h, count(*) n from rigs group by window(AT, '1 hour')",
            "a SELECT has several windows, which Spark does not support",
        ),
        (
            "select id, session_window(at, '1 hour') h from rigs group by id, session_window(at, '60 minutes')",
            "a SELECT has several windows, which Spark does not support",
        ),
        ("select 1 a; select 2 b", "expected one query, found 2 statements"),
        ("select 'abc", "unterminated '"),
    ],
)
def test_sql_that_is_wrong(sql: str, said: str) -> None:
    text = f'steps: {{s: {{sql: "{sql}"}}}}\n{OUT}'
    assert [line for line in errors(text) if said in line], errors(text)


@pytest.mark.parametrize(
    "sql",
    [
        "select *, reading.*, _offset, upper(reading.unit) u from rigs where u = 'BAR'",
        "select id, filter(array(id), x -> x > 1) as xs from rigs",
        "select r.*, p.name from rigs r left join pumps p using (id)",
        "select t.item from rigs lateral view explode(array(1)) t as item",
        "select item from rigs lateral view explode(array(1)) t as item",
        "select timestampdiff(MINUTE, at, current_timestamp()) m, date_trunc('hour', at) h from rigs",
        "select * except (reading) from rigs",
        "select r.*, p.* except (id) from rigs r join pumps p on r.id = p.id",
        "select id from rigs where exists (select 1 from pumps p where p.id = rigs.id)",
        "select id, interval 1 minute + at as later from rigs",
        "select named_struct('a', id) as s, cast(id as string) t, id::string as u from rigs",
        "select case when id > 1 then 'a' else 'b' end as kind from rigs",
        "select x.a from (select id as a from rigs) x",
        "select value, _key from raw",
        "select /*+ broadcast(p) */ r.id from rigs r join pumps p on r.id = p.id",
        "select window(at, '1 hour') w, window.end e, count(*) n from rigs group by window(at, '1 hour')",
        "select window(r.at, '1 hour').end e, count(*) n from rigs r group by window(at, '1 hour')",
        "select window(`at`, '1 hour').end e, count(*) n from rigs group by window(at, '1 HOUR')",
        "select window(at, '1 hour').end e from rigs r join pumps p on r.id = p.id group by window(r.at, '1 hour')",
        "select window(at, '1 hour') w, count(*) n from rigs group by window((at), '60 minutes')",
        "select window(at, '1 hour') w, count(*) n from rigs group by window(at, '1 hour', '1 hour', '0 seconds')",
        "select window(at, '1 hour').end e from rigs r join rigs q using (at) group by window(r.at, '1 hour')",
        "select count(*) n from rigs group by window(at, 'interval 1 hour 30 minutes', '15 MINUTES', '-5 minutes')",
        "select count(*) n from rigs group by window(at, '1 minute 1.5 seconds')",
        "select id, count(*) n from rigs group by id, session_window(at, '1 month')",
        "select window, count(*) n from (select window(at, '1 hour') as window from rigs) group by window",
        "select id, window from (select id, at, window(at, '1 hour') window from rigs) where window.start > at",
    ],
)
def test_sql_that_is_right(sql: str) -> None:
    assert errors(f'steps: {{s: {{sql: "{sql}"}}}}\n{OUT}') == []


def test_sql_errors_point_at_their_own_line() -> None:
    text = SOURCE + "steps:\n  s:\n    sql: |\n      select id\n      from rigs\n      where idd > 1\n" + OUT
    line = SOURCE.count("\n") + 6
    assert next(each for each in reported(text) if "error" in each).startswith(f"{line}:13: error: the SQL of step 's'")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("sinks: {o: {from: rigs, topic: t, key: idd}}", "key of sink 'o' names the column 'idd'"),
        ("sinks: {o: {from: rigs, topic: t, value: [id, x]}}", "value of sink 'o' names the column 'x'"),
        ("sinks: {o: {from: rigs, topic: t, headers: {h: x}}}", "header 'h' of sink 'o' names the column 'x'"),
        ("sinks: {o: {from: rigs, topic: t, key: id id id}}", "key of sink 'o' is invalid: unexpected 'id'"),
        ("sinks: {o: {from: rigs, table: t, key: [idd]}}", "key of sink 'o' names the column 'idd'"),
        (
            "sinks: {o: {from: rigs, files: {path: x, partition_by: day}}}",
            "partition_by of sink 'o' names the column 'day'",
        ),
        ("views: {o: {from: rigs, key: idd}}", "key of view 'o' names the column 'idd'"),
        ("sinks: {o: {from: rigs, table: t, key: id, order_by: x}}", "order_by of sink 'o' names the column 'x'"),
        ("sinks: {o: {from: rigs, topic: t, key: id, deletes: x > 1}}", "deletes of sink 'o' names the column 'x'"),
        ("views: {o: {from: rigs, key: id, url: sqlit:///x.db}}", "url of view 'o' is of the kind 'sqlit', and"),
        ("views: {o: {from: rigs, key: id, order_by: x}}", "order_by of view 'o' names the column 'x'"),
        ("views: {o: {from: rigs, by: x, aggregate: {n: id}}}", "aggregate 'n' of view 'o' has no aggregate function"),
        (
            "views: {o: {from: rigs, by: id, aggregate: {ID: count(*)}}}",
            "aggregate 'ID' of view 'o' has the name of a column that is grouped by; give it another name",
        ),
        (
            "steps: {s: {from: rigs, by: id, window: {column: at, size: 1 s}, aggregate: {window_end: max(at)}}}\n"
            + OUT,
            "step 's' has windows, which add the columns window_start and window_end, and another 'window_end'",
        ),
        ("steps: {s: {from: rigs, deduplicate: {key: x}}}\n" + OUT, "step 's' names the column 'x'"),
        (
            "steps: {s: {from: rigs, join: {table: pumps, on: at}}}\n" + OUT,
            "'pumps', joined by step 's', names the column",
        ),
        (
            "steps: {s: {sql: select id from rigs, expect: {e: at > 1}}}\n" + OUT,
            "expectation 'e' of step 's' names the co",
        ),
        (
            "steps: {s: {from: rigs, by: id, window: {column: x, size: 1 s}, aggregate: {n: sum(y)}}}\n" + OUT,
            "window of step 's' names the column 'x'",
        ),
    ],
)
def test_columns_that_are_not_there(text: str, said: str) -> None:
    assert [line for line in errors(text) if said in line], errors(text)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "steps: {s: {sql: select id from rigs, expect: {e: id + 1}}}\n" + OUT,
            "expectation 'e' of step 's' is BIGINT",
        ),
        (
            "steps: {s: {sql: select id from rigs, expect: {e: sum(id) > 1}}}\n" + OUT,
            "the aggregate function sum is used",
        ),
        ("sinks: {o: {from: rigs, topic: t, key: agv(id)}}", "key of sink 'o': there is no function 'agv'"),
        ("views: {o: {from: rigs, by: id, aggregate: {n: upper(id)}}}", "aggregate 'n' of view 'o' has no aggregate"),
        ("views: {o: {from: rigs, by: id, aggregate: {n: sum(id) + _offset}}}", "'_offset' is neither grouped"),
        (
            "steps: {s: {sql: 'select id, map(id, id) m from rigs', view: {key: id, order_by: m}}}\n" + OUT,
            "order_by of view 's' names the column 'm' of type MAP",
        ),
        (
            "steps: {s: {sql: 'select id, to_date(at) day from rigs', watermark: {column: day, delay: 1 s}}}\n" + OUT,
            "watermark of step 's' uses the column 'day' of type DATE, which is not a timestamp",
        ),
        (
            "steps: {a: {sql: 'select reading as name from rigs'}, s: {from: a, join: {table: pumps, on: name}}}\n"
            + OUT,
            "step 's' joins 'name' of type STRUCT<pressure: DOUBLE, unit: STRING> with STRING",
        ),
    ],
)
def test_types_that_do_not_fit(text: str, said: str) -> None:
    assert [line for line in errors(text) if said in line], errors(text)


def test_settings_that_change_the_analysis_turn_its_checks_off() -> None:
    text = "spark: {spark.sql.ansi.enabled: false}\nsteps: {s: {sql: select agv(id) n from rigs}}\n" + OUT
    assert errors(text) == []


def test_functions_that_python_code_registers_are_known(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(
        "def step(rigs):\n    rigs.sparkSession.udf.register('mine', str)\n    return rigs\n"
    )
    (tmp_path / "p.yml").write_text(
        SOURCE + "steps: {a: {from: rigs, python: own:step}, s: {sql: select mine(id) m from rigs}}\n" + OUT
    )
    found = load_yaml(str(tmp_path / "p.yml"), {})
    assert [each for each in found.problems if "mine" in each.message] == []


def test_columns_after_an_aggregation_and_a_join_are_known() -> None:
    text = """
        steps:
          a: {from: rigs, by: id, window: {column: at, size: 1 s}, aggregate: {n: count(*)}}
          b: {from: a, join: {table: pumps, on: id}}
        sinks:
          o: {from: b, topic: t, value: [window_start, window_end, id, n, name]}
          p: {from: b, topic: t, value: [at]}
    """
    assert [line.split(";")[0] for line in errors(textwrap.dedent(text))] == [
        "value of sink 'p' names the column 'at', which does not exist"
    ]


def test_event_time_is_a_time() -> None:
    text = "steps: {s: {from: rigs, window: {column: id, size: 1 s}, aggregate: {n: count(*)}}}\n" + OUT
    assert (
        "window of step 's' uses the column 'id' of type BIGINT, which is not a timestamp; compute" in errors(text)[1]
    )
    source = "topic: t, schema: at STRING, watermark: {column: at, delay: 1 s}"
    lines = reported(f"pipeline: p\nsources: {{s: {{{source}}}}}\n{OUT}")
    assert "watermark of source 's' uses the column 'at' of type STRING, which is not a timestamp" in lines[0]
    assert "event_time: try_to_timestamp(at)" in lines[0]
    local = source.replace("STRING", "TIMESTAMP_NTZ")
    lines = reported(f"pipeline: p\nsources: {{s: {{{local}}}}}\n{OUT}")
    assert "of type TIMESTAMP_NTZ, which is not a timestamp with a time zone" in lines[0]
    window = "steps: {s: {from: t, window: {column: at, size: 1 s}, aggregate: {n: count(*)}}}\n"
    head = "pipeline: p\nsources: {t: {topic: t, schema: at TIMESTAMP_NTZ}}\n"
    assert not [line for line in reported(head + window + OUT) if "not a timestamp" in line]


def test_columns_of_sources() -> None:
    source = "topic: t, schema: a INT, columns: {b: a + 1, c: b + x}, watermark: {column: d, delay: 1 s}"
    text = f"pipeline: p\nsources: {{s: {{{source}}}}}\n"
    said = [line for line in reported(text + OUT) if "names the column" in line]
    assert "column 'c' of source 's' names the column 'x'" in said[0]
    assert "watermark of source 's' names the column 'd'" in said[1]


@pytest.mark.parametrize(("how", "is_reported"), [("inner", True), ("left", True), ("semi", False), ("anti", False)])
def test_columns_that_a_join_leaves_out_are_a_warning(how: str, is_reported: bool) -> None:
    text = f"""
        steps:
          a: {{sql: "select id, reading.unit as name from rigs"}}
          s: {{from: a, join: {{table: pumps, on: id, how: {how}}}}}
    """
    found = [line for line in warnings(textwrap.dedent(text) + OUT) if "leaves out the columns" in line]
    assert [line.partition(",")[0] for line in found] == [
        "step 's' leaves out the columns name of 'pumps'"
    ] * is_reported  # fmt: skip


@pytest.mark.parametrize(
    ("key", "is_refused"), [("tags", True), ("nested", True), ("any", True), ("items", False), ("id", False)]
)
def test_deduplication_compares_its_key(key: str, is_refused: bool) -> None:
    types = "id BIGINT, items ARRAY<INT>, tags MAP<STRING, INT>, nested STRUCT<x: ARRAY<MAP<INT, INT>>>, any VARIANT"
    text = f'pipeline: p\nsources: {{m: {{topic: m, schema: "{types}"}}}}\n'
    text += f"steps: {{s: {{from: m, deduplicate: {{key: [{key}]}}}}}}\n{OUT}"
    assert bool([line for line in reported(text) if "which Spark cannot compare" in line]) is is_refused
