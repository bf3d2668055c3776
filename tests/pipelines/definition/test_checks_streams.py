"""What a stream and the realtime engine cannot do."""

from __future__ import annotations

import pytest

from odradek.pipelines.definition.vocabulary import Engine
from tests.pipelines.definition.definitions import OUT, SOURCE, errors, reported, warnings

GROUPED = "steps: {s: {from: %s, by: [%s], aggregate: {n: count(*)}%s}}\nsinks: {o: {from: s, topic: t%s}}"
CHAINED = """
steps:
  a: {from: rigs, by: id, aggregate: {n: count(*)}}
  s: {from: a, by: n, aggregate: {m: count(*)}}
views: {v: {from: s, key: n}}
"""
WINDOW = ", window: {column: at, size: 1 minute}"
TO_TOPIC = "pipeline: p\nsources: {s: {topic: t, schema: id BIGINT}}\nsinks: {o: {from: s, topic: o}}\n"


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
            "has a join",
        ),
        ("sinks: {o: {from: rigs, spark: {format: delta}}}", "cannot run sink 'o': it is not a topic"),
        ("sinks: {o: {from: rigs, python: 'operator:add'}}", "cannot run sink 'o': it is not a topic"),
        ("steps: {s: {from: rigs, join: {table: pumps, on: id}}}\nsinks: {o: {from: s, topic: t}}", "has a join"),
        ("sinks: {o: {from: rigs, topic: t, bootstrap_servers: 'x:1'}}", "this engine writes with a single producer"),
        ("views: {v: {from: rigs, key: id}}", "cannot run view 'v': it is not a topic"),
    ],
)
def test_what_real_time_cannot_do(text: str, said: str) -> None:
    assert [line for line in errors(text, Engine.REALTIME) if said in line], errors(text, Engine.REALTIME)
    assert errors(text) == []


def test_what_real_time_can_do() -> None:
    steps = "steps: {q: {sql: select id from s where id > 1}}\n"
    assert reported(TO_TOPIC.replace("{from: s", "{from: q") + steps, engine=Engine.REALTIME) == []


def test_exactly_once() -> None:
    text = (
        SOURCE + "delivery: exactly_once\nsinks: {o: {from: rigs, python: 'operator:add'}, p: {from: rigs, topic: t}}"
    )
    assert "sink 'o' may receive a batch again after a failure" in "\n".join(reported(text))
    assert "cannot deliver exactly once" in "\n".join(reported(text, engine=Engine.REALTIME))


def test_realtime_engine_needs_a_newer_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("odradek.pipelines.definition.spark_version.version", lambda _name: "4.1.1")
    (found,) = reported(TO_TOPIC, engine=Engine.REALTIME)
    assert "the realtime engine needs PySpark 4.3, and 4.1.1 is installed" in found
    assert not reported(TO_TOPIC, engine=Engine.STANDARD)
    monkeypatch.setattr("odradek.pipelines.definition.spark_version.version", lambda _name: "4.10.0")
    assert not reported(TO_TOPIC, engine=Engine.REALTIME)


def test_realtime_engine_does_not_limit_the_records_of_a_batch() -> None:
    limited = TO_TOPIC.replace("id BIGINT", "id BIGINT, max_records_per_batch: 5")
    (found,) = reported(limited, engine=Engine.REALTIME)
    assert "the realtime engine cannot run source 's': it has max_records_per_batch" in found
    assert not reported(limited, engine=Engine.STANDARD)
