"""Problems of definitions that can be parsed but cannot run: names, columns, streams, engines, imports."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from odradek.pipelines.definition.loading import load_yaml
from odradek.pipelines.definition.places import ProblemList
from odradek.pipelines.definition.vocabulary import Engine
from tests.pipelines.definition.definitions import SOURCE, define, reported, reported_for

if TYPE_CHECKING:
    from pathlib import Path

OUT = "sinks: {o: {from: s, console: true}}\n"


def errors(text: str, engine: Engine | None = None) -> list[str]:
    return [line.removeprefix("error: ") for line in reported_for(text, engine) if line.startswith("error")]


def warnings(text: str, engine: Engine | None = None) -> list[str]:
    lines = [line.removeprefix("warning: ") for line in reported_for(text, engine) if line.startswith("warning")]
    return [line for line in lines if "no sink and no view uses the source" not in line]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "steps: {rigs: {sql: select 1 as a}}\nsinks: {o: {from: rigs, console: true}}",
            "the name 'rigs' is already used",
        ),
        (
            "steps: {RIGS: {sql: select 1 as a}}\nsinks: {o: {from: rigs, console: true}}",
            "the name 'RIGS' is already used",
        ),
        (
            "steps: {s: {sql: select * from rig}}\n" + OUT,
            "step 's' reads 'rig', which is neither a source nor a step; did",
        ),
        ("sinks: {o: {from: rigz, console: true}}", "sink 'o' reads 'rigz', which is neither a source nor a step"),
        ("views: {o: {from: rigz, key: id}}", "view 'o' reads 'rigz', which is neither"),
        ("steps: {s: {sql: select * from s}}\n" + OUT, "step 's' reads itself: s ← s"),
        (
            "steps: {a: {sql: select * from b}, b: {sql: select * from s}, s: {sql: select * from a}}\n" + OUT,
            "step 'a' is part of a cycle: a ← b ← s ← a",
        ),
        ("steps: {s: {sql: select 1 as a}}", "the pipeline has neither sinks nor views"),
        (
            "steps: {s: {sql: 'select * from rigs', view: {key: id}}}\nviews: {s: {from: s, key: id}}",
            "the name 's' is already used",
        ),
    ],
)
def test_names(text: str, said: str) -> None:
    assert [line for line in errors(text) if said in line], errors(text)


def test_names_of_tables_do_not_mind_case() -> None:
    assert errors("steps: {s: {sql: select ID from RIGS}}\n" + OUT) == []


def test_an_unused_step_is_a_warning() -> None:
    text = "steps: {s: {sql: select * from rigs}, t: {sql: select * from s}}\n" + OUT
    assert [line for line in warnings(text) if "step 't'" in line] == [
        "no sink and no view uses the step 't'; it will not run; remove it"
    ]


def test_a_topic_read_and_written_is_a_warning() -> None:
    assert "records may circulate endlessly" in warnings("sinks: {o: {from: rigs, topic: rigs}}")[0]


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
        "select id from rigs where exists (select 1 from pumps p where p.id = rigs.id)",
        "select id, interval 1 minute + at as later from rigs",
        "select named_struct('a', id) as s, cast(id as string) t, id::string as u from rigs",
        "select case when id > 1 then 'a' else 'b' end as kind from rigs",
        "select x.a from (select id as a from rigs) x",
        "select value, _key from raw",
        "select /*+ broadcast(p) */ r.id from rigs r join pumps p on r.id = p.id",
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
        ("views: {o: {from: rigs, key: id, url: sqlit:///x.db}}", "url of view 'o' is of the unknown kind 'sqlit'"),
        ("views: {o: {from: rigs, key: id, order_by: x}}", "order_by of view 'o' names the column 'x'"),
        ("views: {o: {from: rigs, by: x, aggregate: {n: id}}}", "aggregate 'n' of view 'o' has no aggregate function"),
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
    import textwrap

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


def test_columns_of_sources() -> None:
    source = "topic: t, schema: a INT, columns: {b: a + 1, c: b + x}, watermark: {column: d, delay: 1 s}"
    text = f"pipeline: p\nsources: {{s: {{{source}}}}}\n"
    said = [line for line in reported(text + OUT) if "names the column" in line]
    assert "column 'c' of source 's' names the column 'x'" in said[0]
    assert "watermark of source 's' names the column 'd'" in said[1]


GROUPED = "steps: {s: {from: %s, by: [%s], aggregate: {n: count(*)}%s}}\nsinks: {o: {from: s, topic: t%s}}"
CHAINED = """
steps:
  a: {from: rigs, by: id, aggregate: {n: count(*)}}
  s: {from: a, by: n, aggregate: {m: count(*)}}
views: {v: {from: s, key: n}}
"""
WINDOW = ", window: {column: at, size: 1 minute}"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            GROUPED % ("raw", "value", "", ""),
            "aggregates a stream without a watermark, and sink 'o' (mode: append)",
        ),
        (GROUPED % ("rigs", "id", "", ""), "without grouping by event time, so no group becomes final for sink 'o'"),
        ("steps: {s: {sql: 'select id, count(*) n from rigs group by id'}}\n" + OUT, "without grouping by event time"),
        ("steps: {s: {sql: select distinct value from raw}}\n" + OUT, "without a watermark"),
        (
            "steps: {s: {from: raw, state: {key: value, processor: 'json:JSONDecoder', clock: event}}}\n" + OUT,
            "has event-time timers, but its input has no watermark",
        ),
        ("steps: {s: {from: rigs, join: {table: raw, on: _key}}}\n" + OUT, "joins with 'raw', which is a stream"),
        ("steps: {s: {sql: select id from rigs order by id}}\n" + OUT, "sorts a stream"),
        ("steps: {s: {sql: select id from rigs limit 3}}\n" + OUT, "limits a stream"),
        ("steps: {s: {sql: select lag(id) over (order by at) l from rigs}}\n" + OUT, "uses OVER on a stream"),
        (CHAINED, "keeps state over the updated rows of 'a', which 'v' reads"),
    ],
)
def test_what_a_stream_cannot_do(text: str, said: str) -> None:
    assert [line for line in errors(text) if said in line], errors(text)
    assert not [line for line in errors(text, Engine.BATCH) if said in line]


@pytest.mark.parametrize(
    "text",
    [
        GROUPED % ("rigs", "id", WINDOW, ""),
        GROUPED % ("rigs", "at", "", ""),
        GROUPED % ("rigs", "id", "", ", mode: update"),
        "steps: {s: {sql: \"select window(at, '1 minute') w, count(*) n from rigs group by window(at, '1 minute')\"}}\n"
        + OUT,
        "steps: {s: {sql: \"select window(at, '1 minute') w, count(*) n from rigs group by w\"}}\n" + OUT,
        "steps: {s: {sql: select name from pumps order by name limit 1}}\nsinks: {o: {from: rigs, console: true}}",
        "views: {v: {from: rigs, by: id, aggregate: {n: count(*)}}}",
    ],
)
def test_what_a_stream_can_do(text: str) -> None:
    assert errors(text) == []


def test_state_that_grows_for_ever_is_a_warning() -> None:
    assert (
        "keeps every id in state without a limit"
        in warnings("steps: {s: {from: rigs, deduplicate: {key: id}}}\n" + OUT)[0]
    )
    joined = "steps: {s: {sql: select a._key from raw a join rigs b on a._key = b._key}}\n" + OUT
    assert "joins streams, and 'raw' has no watermark" in warnings(joined)[0]


def test_a_pipeline_without_streams_is_a_batch() -> None:
    text = "pipeline: p\nsources: {s: {files: {path: x, format: json}}}\n" + OUT
    assert "the standard engine needs a stream, and no source is one" in reported(text)[0]
    assert reported(text, engine=Engine.BATCH) == []


def test_a_stream_of_files_needs_a_schema() -> None:
    text = "pipeline: p\nsources: {s: {files: {path: x, format: json}, stream: true}}\n" + OUT
    assert "is a stream of files without a schema" in reported(text)[0]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (GROUPED % ("rigs", "id", WINDOW, ""), "cannot run step 's': it aggregates records"),
        (
            "steps: {s: {sql: 'select distinct id, at from rigs'}}\nsinks: {o: {from: s, topic: t}}",
            "aggregates records",
        ),
        ("steps: {s: {from: rigs, deduplicate: {key: id}}}\nsinks: {o: {from: s, topic: t}}", "deduplicates records"),
        (
            "steps: {s: {from: rigs, state: {key: id, processor: json:JSONDecoder}}}\nsinks: {o: {from: s, topic: t}}",
            "keeps state in Python",
        ),
        (
            "steps: {s: {sql: select id from rigs join raw on reading.unit = value}}\nsinks: {o: {from: s, topic: t}}",
            "joins the streams",
        ),
        ("sinks: {o: {from: rigs, files: {path: x}}}", "files are written once per batch"),
        ("sinks: {o: {from: rigs, table: x, key: id}}", "in one transaction"),
        ("sinks: {o: {from: rigs, spark: {format: delta}}}", "other formats are written once per batch"),
        ("sinks: {o: {from: rigs, python: 'operator:add'}}", "its function takes a batch"),
        ("sinks: {o: {from: rigs, console: true}, p: {from: rigs, topic: t}}", "either to the console or to topics"),
        ("sinks: {o: {from: rigs, topic: t, bootstrap_servers: 'x:1'}}", "this engine writes with a single producer"),
        ("views: {v: {from: rigs, key: id}}", "cannot run view 'v': it is written once per batch"),
    ],
)
def test_what_real_time_cannot_do(text: str, said: str) -> None:
    assert [line for line in errors(text, Engine.REALTIME) if said in line], errors(text, Engine.REALTIME)
    assert errors(text) == []


def test_what_real_time_can_do() -> None:
    text = (
        "steps: {s: {from: rigs, join: {table: pumps, on: id}}, t: {sql: select id from s where id > 1}}\n"
        "sinks: {o: {from: t, topic: t}, p: {from: raw, topic: u}}"
    )
    assert errors(text, Engine.REALTIME) == []
    assert errors("sinks: {o: {from: rigs, console: true}}", Engine.REALTIME) == []


def test_python_in_real_time_is_a_warning() -> None:
    text = "steps: {s: {from: rigs, python: 'json:loads'}}\nsinks: {o: {from: s, topic: t}}"
    assert "step 's' must not use Python UDFs" in warnings(text, Engine.REALTIME)[0]


def test_exactly_once() -> None:
    text = (
        SOURCE + "delivery: exactly_once\nsinks: {o: {from: rigs, python: 'operator:add'}, p: {from: rigs, topic: t}}"
    )
    assert "sink 'o' may receive a batch again after a failure" in "\n".join(reported(text))
    assert "cannot deliver exactly once" in "\n".join(reported(text, engine=Engine.REALTIME))


def test_quarantine_needs_dead_letters() -> None:
    text = "steps: {s: {sql: select id from rigs, expect: {e: {check: id > 0, otherwise: quarantine}}}}\n" + OUT
    assert "quarantines rows, and dead_letters is not set; add dead_letters: TOPIC" in errors(text)[0]
    assert errors(text + "dead_letters: d\n") == []


MODULE = """
raise RuntimeError("checking runs no code of the user's")
import json as js
CONSTANT = 1
def one(a): ...
def two(a, b=1): ...
def many(*all): ...
def named(*, key): ...
class Processor: ...
"""


@pytest.mark.parametrize(
    ("path", "inputs", "said"),
    [
        ("rules:one", 1, None),
        ("rules:two", 2, None),
        ("rules:many", 2, None),
        ("rules:js", 1, None),
        ("pack.inner:one", 1, None),
        ("json.decoder:JSONDecoder", 1, None),
        ("rules:one", 2, "rules:one is called with 2 arguments, and takes others; write def one(a, b): …"),
        ("rules:named", 1, "is called with 1 argument, and takes others"),
        ("rules:onee", 1, "module 'rules' does not define 'onee'; did you mean 'one'?"),
        ("ruels:one", 1, "module 'ruels' of ruels:one was not found"),
        ("pack.outer:one", 1, "module 'pack.outer' of pack.outer:one was not found"),
    ],
)
def test_import_paths_are_followed_without_importing(tmp_path: Path, path: str, inputs: int, said: str | None) -> None:
    (tmp_path / "rules.py").write_text(MODULE)
    (tmp_path / "pack").mkdir()
    (tmp_path / "pack" / "__init__.py").write_text(MODULE)
    (tmp_path / "pack" / "inner.py").write_text(MODULE)
    names = ["a", "b"][:inputs]
    (tmp_path / "p.yml").write_text(
        "pipeline: p\nsources: {a: {topic: a, format: text}, b: {topic: b, format: text}}\n"
        f"steps: {{s: {{from: [{', '.join(names)}], python: '{path}'}}}}\n" + OUT
    )
    problems = [each.text for each in load_yaml(str(tmp_path / "p.yml"), {}).problems if each.severity == "error"]
    assert problems == [] if said is None else said in problems[0]


def test_a_file_that_is_not_there_or_not_text_is_reported(tmp_path: Path) -> None:
    assert "cannot be read: No such file" in load_yaml(str(tmp_path / "p.yml"), {}).problems[0].text
    (tmp_path / "q.yml").write_bytes(b"pipeline: p\nengine: \xff\n")
    assert str(load_yaml(str(tmp_path / "q.yml"), {}).problems[0]).endswith(
        "q.yml:2:9: error: the file is not UTF-8; save it as UTF-8"
    )


def test_only_a_sound_definition_gives_its_pipeline() -> None:
    assert define(SOURCE + "sinks: {o: {from: rigs, console: true}}").require().name == "p"
    with pytest.raises(ProblemList) as caught:
        define("pipeline: p\nengin: x\nsinkz: {}\n").require()
    assert [each.place.line for each in caught.value][-2:] == [2, 3]
    assert "p.yml:2:1: error: unknown key 'engin'" in str(caught.value)


CONSOLE = "pipeline: p\nsources: {s: {topic: t, schema: id BIGINT}}\n" + OUT


def test_names_of_internal_columns_are_refused() -> None:
    assert any(
        "'__rejected', which is internal" in each
        for each in errors("steps: {s: {sql: select id as __rejected from rigs}}\n" + OUT)
    )
    text = CONSOLE.replace("id BIGINT", "'id BIGINT, __Origin STRING'")
    assert any("'__Origin', which is internal" in each for each in reported(text))


def test_realtime_engine_needs_a_newer_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("odradek.pipelines.definition.spark_version.version", lambda _name: "4.1.1")
    (found,) = reported(CONSOLE, engine=Engine.REALTIME)
    assert "the realtime engine needs PySpark 4.3, and 4.1.1 is installed" in found
    assert not reported(CONSOLE, engine=Engine.STANDARD)
    monkeypatch.setattr("odradek.pipelines.definition.spark_version.version", lambda _name: "4.10.0")
    assert not reported(CONSOLE, engine=Engine.REALTIME)


def test_realtime_engine_refuses_a_console_that_would_lose_rows() -> None:
    (found,) = reported("dead_letters: d\n" + CONSOLE, engine=Engine.REALTIME)
    assert "rejected rows would have no output" in found
