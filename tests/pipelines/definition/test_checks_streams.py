"""What a stream and the realtime engine cannot do."""

from __future__ import annotations

import pytest

from odradek.pipelines.definition.vocabulary import Engine
from tests.pipelines.definition.definitions import CONSOLE, OUT, SOURCE, errors, reported, reported_for, warnings

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
        GROUPED.replace("{s:", "{q: {sql: select * from rigs where at is not null}, s:") % ("q", "at", "", ""),
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
            "steps: {s: {sql: 'select distinct at from rigs where at is not null'}}\nsinks: {o: {from: s, topic: t}}",
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


def test_realtime_engine_does_not_limit_the_records_of_a_batch() -> None:
    limited = CONSOLE.replace("id BIGINT", "id BIGINT, max_records_per_batch: 5")
    (found,) = reported(limited, engine=Engine.REALTIME)
    assert found.startswith("2:")
    assert "the realtime engine cannot limit the records of a batch of source 's'" in found
    assert "remove max_records_per_batch, or use engine: standard" in found
    assert not reported(limited, engine=Engine.STANDARD)


def test_a_limit_of_a_static_source_is_not_used() -> None:
    static = "  limited: {topic: l, schema: id BIGINT, stream: false, max_records_per_batch: 5}\n"
    text = "steps: {s: {from: rigs, join: {table: limited, on: id}}}\nsinks: {o: {from: s, topic: t}}"
    assert [line for line in reported_for(text, Engine.REALTIME, SOURCE + static) if line.startswith("error")] == []
