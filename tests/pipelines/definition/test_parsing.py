"""Parsing of YAML to the model: every kind of source, step, sink and view, and the problem of each mistake."""

from __future__ import annotations

import textwrap
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.pipelines.definition import keys
from odradek.pipelines.definition.column_types import Column, Primitive
from odradek.pipelines.definition.model import (
    ConsoleTarget,
    Expectation,
    FileOrigin,
    FilesTarget,
    JdbcOrigin,
    LatestRows,
    RunningAggregate,
    Sink,
    SparkTarget,
    Start,
    TableTarget,
    TopicOrigin,
    TopicTarget,
    View,
    Watermark,
)
from odradek.pipelines.definition.nodes import ListNode, MappingNode, Node, Scalar
from odradek.pipelines.definition.operations import (
    Aggregation,
    Deduplication,
    KeyedState,
    NamedExpression,
    PythonFunction,
    PythonReference,
    Sql,
    StreamJoin,
    Window,
)
from odradek.pipelines.definition.parsing import parse_pipeline
from odradek.pipelines.definition.places import Place, Problems
from odradek.pipelines.definition.vocabulary import (
    Delivery,
    Duration,
    Encoding,
    Engine,
    FileFormat,
    Otherwise,
    SinkMode,
    StartAt,
    StateOrder,
    StreamJoinKind,
)
from tests.pipelines.definition.definitions import SOURCE, define, mappings, reported, reported_for, sound

SINK = "sinks: {out: {from: rigs, console: true}}\n"


def test_a_whole_pipeline_is_read() -> None:
    found = sound(
        """
        pipeline: rigs-1
        engine: batch
        delivery: exactly_once
        bootstrap_servers: one:1,two:2
        kafka: {security.protocol: SSL}
        trigger: 100 ms
        dead_letters: dead
        warehouse: sqlite:///x.db
        checkpoints: here
        master: local[2]
        spark: {spark.sql.shuffle.partitions: 2, spark.ui.enabled: false}
        sources: {rigs: {topic: rigs, format: bytes}}
        sinks: {out: {from: rigs, console: true}}
        """
    )
    assert (found.name, found.engine, found.delivery) == ("rigs-1", Engine.BATCH, Delivery.EXACTLY_ONCE)
    assert (found.bootstrap_servers, found.kafka) == ("one:1,two:2", {"security.protocol": "SSL"})
    assert (found.trigger, found.dead_letters, found.warehouse) == (Duration(100), "dead", "sqlite:///x.db")
    assert (found.checkpoints, found.master) == ("here", "local[2]")
    assert found.spark == {"spark.sql.shuffle.partitions": "2", "spark.ui.enabled": "false"}
    assert found.sinks == (Sink("out", "rigs", ConsoleTarget()),)


def source(text: str) -> Any:
    ends = "sinks: {out: {from: s, console: true}}\n"
    return sound(f"pipeline: p\nengine: batch\nsources:\n  s: {text}\n{ends}").sources[0]


def test_topics_are_read_by_name_list_and_pattern() -> None:
    assert source("{topic: a, format: text}").origin == TopicOrigin(("a",))
    assert source("{topics: [a, b], format: text}").origin == TopicOrigin(("a", "b"))
    assert source("{pattern: 'a-.*', format: text}").origin == TopicOrigin(pattern="a-.*")
    assert source("{topic: a, format: text}").is_stream
    tuned = source("{topic: a, format: text, bootstrap_servers: 'h:1', kafka: {x: 1}, max_records_per_batch: 5}").origin
    assert (tuned.bootstrap_servers, tuned.kafka, tuned.max_records_per_batch) == ("h:1", {"x": "1"}, 5)


@pytest.mark.parametrize(
    ("start", "expected"),
    [
        ("latest", Start(StartAt.LATEST)),
        ("1970-01-01T00:00:01Z", Start(StartAt.TIME, 1000)),
        ("1970-01-01 00:00:01", Start(StartAt.TIME, 1000)),
        ("{a: {0: 5, 1: 7}}", Start(StartAt.OFFSETS, offsets={"a": {0: 5, 1: 7}})),
    ],
)
def test_where_to_start(start: str, expected: Start) -> None:
    assert source(f"{{topic: a, format: text, start: {start}}}").origin.start == expected


def test_files_and_tables_are_static_unless_said_otherwise() -> None:
    files = source("{files: {path: x, format: csv, options: {header: true}}}")
    assert (files.origin, files.is_stream) == (FileOrigin("x", FileFormat.CSV, {"header": "true"}), False)
    assert source("{files: {path: x, format: csv}, stream: true, schema: a INT}").is_stream
    table = source("{jdbc: {url: 'jdbc:sqlite:x', table: t}}")
    assert (table.origin, table.is_stream) == (JdbcOrigin("jdbc:sqlite:x", "t"), False)


def test_columns_and_watermark() -> None:
    found = source(
        "{topic: a, schema: 't STRING', columns: {at: to_timestamp(t)}, watermark: {column: at, delay: 5 s}}"
    )
    assert found.format.schema.columns == (Column("t", Primitive("STRING")),)
    assert found.columns == (NamedExpression("at", "to_timestamp(t)"),)
    assert found.watermark == Watermark("at", Duration(5000))


STEPS = """
steps:
  a:
    sql: select * from rigs
    expect:
      one: {check: id > 0, otherwise: drop}
      two: id < 9
  b: {from: rigs, window: {column: at, size: 1 minute, slide: 30 s}, by: id, aggregate: {n: count(*)}}
  c: {from: rigs, deduplicate: {key: [id], within: 10 minutes}}
  d: {from: rigs, join: {stream: rigs, on: id, within: 1 hour, how: left}}
  e: {from: [rigs, pumps], python: "operator:add", schema: x INT}
views:
  v: {from: a, key: [id], order_by: at, url: "sqlite:///v.db"}
  w: {from: e, by: [x], aggregate: {n: count(*)}}
sinks:
  b: {from: b, topic: t, key: id, value: [id, n], headers: {h: "'x'"}, mode: update}
  c: {from: c, files: {path: out, partition_by: [id]}}
  d: {from: d, table: t, key: [id], order_by: at, url: "sqlite:///d.db"}
  e: {from: e, spark: {format: delta, options: {path: x}}}
  f: {from: raw, topic: t, value: value, format: text}
"""


def test_steps_sinks_and_views() -> None:
    found = define(SOURCE + STEPS).pipeline  # both sides of `d` have the same columns
    assert found is not None
    a, b, c, d, e = found.steps
    assert a.operation == Sql("select * from rigs")
    assert a.expectations == (Expectation("one", "id > 0", Otherwise.DROP), Expectation("two", "id < 9"))
    windows = Window("at", Duration(60_000), Duration(30_000))
    assert b.operation == Aggregation("rigs", (NamedExpression("n", "count(*)"),), ("id",), windows)
    assert c.operation == Deduplication("rigs", ("id",), Duration(600_000))
    assert d.operation == StreamJoin("rigs", "rigs", ("id",), Duration(3_600_000), StreamJoinKind.LEFT)
    function = PythonReference("operator", "add")
    assert e.operation == PythonFunction(("rigs", "pumps"), function, (Column("x", Primitive("INT")),))
    assert found.views == (
        View("v", "a", LatestRows(("id",), ("at",)), url="sqlite:///v.db"),
        View("w", "e", RunningAggregate(("x",), (NamedExpression("n", "count(*)"),))),
    )
    topic = TopicTarget("t", "id", ("id", "n"), headers=(NamedExpression("h", "'x'"),))
    assert found.sinks == (
        Sink("b", "b", topic, SinkMode.UPDATE),
        Sink("c", "c", FilesTarget("out", FileFormat.PARQUET, ("id",))),
        Sink("d", "d", TableTarget("t", ("id",), "sqlite:///d.db", ("at",))),
        Sink("e", "e", SparkTarget("delta", {"path": "x"})),
        Sink("f", "raw", TopicTarget("t", value=("value",), encoding=Encoding.TEXT)),
    )


def test_a_step_can_be_kept_as_a_view_of_its_name() -> None:
    found = sound(SOURCE + "steps: {last: {sql: select * from rigs, view: {key: id}}}")
    assert found.views == (View("last", "last", LatestRows(("id",))),)


def test_lists_of_order_words_of_state_and_joins_for_ever_are_read() -> None:
    text = """
        steps:
          k: {from: a, state: {key: id, processor: "m:P", order: any}}
          j: {from: a, join: {stream: b, on: id, within: forever}}
        views: {v: {from: a, key: id, order_by: [x, y]}}
        """
    found = define("pipeline: p\n" + textwrap.dedent(text)).pipeline
    assert found is not None
    kept, joined = (each.operation for each in found.steps)
    assert isinstance(kept, KeyedState)
    assert kept.order is StateOrder.ANY
    assert joined == StreamJoin("a", "b", ("id",), None)
    assert found.views == (View("v", "a", LatestRows(("id",), ("x", "y"))),)


def test_equal_lengths_of_time_are_equal() -> None:
    assert str(Duration(60_000)) == "1 minute"
    assert str(Duration(90_000)) == "90 seconds"
    assert str(Duration(1)) == "1 ms"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("sources: {s: {topic: 5}}", "topic of source 's' must be the name of a topic, not the number 5"),
        ("sources: {s: {topik: a}}", "unknown key 'topik' of source 's'; did you mean 'topic'?"),
        ("sources: {s: {}}", "source 's' has none of topic, topics, pattern, files, jdbc"),
        ("sources: {s: 5}", "source 's' must be a mapping, not the number 5"),
        ("sources: [a]", "sources of the pipeline must be a mapping of names, not a list"),
        ("sources: {s: {topic: a, pattern: b}}", "source 's' has both topic and pattern; keep one of the two"),
        ("sources: {s: {topic: a}}", "source 's' has no schema; add schema: id BIGINT, name STRING; or format: text"),
        (
            "sources: {s: {topic: a, format: xml}}",
            "format of source 's' cannot be 'xml'; one of: json, avro, text, bytes",
        ),
        ("sources: {s: {topic: a, format: text, schema: a INT}}", "schema of source 's' is not allowed"),
        ("sources: {s: {topics: [], format: text}}", "topics of source 's' must be a list of topics, not a list"),
        ("sources: {s: {topics: [a, a], format: text}}", "topics of source 's' names 'a' twice"),
        ("sources: {s: {pattern: '(', format: text}}", "pattern of source 's' is not a regular expression: missing )"),
        ("sources: {s: {topic: a, format: text, start: soon}}", "start of source 's' must be a starting point"),
        (
            "sources: {s: {topic: a, format: text, start: {b: {0: 1}}}}",
            "names the topic 'b', which the source does not read",
        ),
        ("sources: {s: {topic: a, format: text, start: {0: -1}}}", "must map partitions to offsets"),
        ("sources: {s: {topic: a, format: text, max_records_per_batch: 0}}", "must be a positive integer"),
        ("sources: {s: {topic: a, format: text, tombstones: keep}}", "one of: drop, rows, dead_letters"),
        ("sources: {s: {files: {path: x}}}", "files of source 's' has no format; json, csv or parquet"),
        ("sources: {s: {files: {path: x, format: csv}, start: latest}}", "start of source 's' applies to topics"),
        ("sources: {s: {jdbc: {url: x, table: t}}}", "url of source 's' is not a JDBC URL"),
        ("sources: {s: {jdbc: {url: 'jdbc:x', table: t}, stream: true}}", "reads a database and cannot be a stream"),
        ("sources: {s: {jdbc: {url: 'jdbc:x'}}}", "jdbc of source 's' has none of table, query"),
        ("sources: {1s: {topic: a, format: text}}", "'1s' cannot be the name of a source"),
        ("steps: {s: {sql: 5}}", "sql of step 's' must be text, not the number 5; quote it"),
        (
            "steps: {s: {sql: select a, b from c}}",
            "'b from c' of step 's'; within {…} a comma ends a value",
        ),
        ("steps: {s: {sql: select 1, from: a}}", "remove from: the inputs of a query are the tables of its SQL"),
        ("steps: {s: {sql: select 1, window: {}}}", "window of step 's' applies to aggregate, not to sql"),
        ("steps: {s: {from: a}}", "step 's' has none of sql, python, aggregate, deduplicate, join, state"),
        ("steps: {s: {aggregate: {n: count(*)}}}", "step 's' has no from; name the input, a source or step"),
        (
            "steps: {s: {from: a, aggregate: {}}}",
            "aggregate of step 's' is empty; for example aggregate: {events: count(*)}",
        ),
        (
            "steps: {s: {from: [a, b], aggregate: {n: count(*)}}}",
            "step 's' has several inputs, and takes one",
        ),
        ("steps: {s: {from: [a, a], python: 'a:b'}}", "from of step 's' names 'a' twice"),
        ("steps: {s: {from: a, python: nodots}}", "python of step 's' must be an import path, not 'nodots'"),
        ("steps: {s: {from: a, join: {stream: b, within: 1 s}}}", "join of step 's' has no on"),
        (
            "steps: {s: {from: a, join: {stream: b, on: c, within: 1 s, how: ful}}}",
            "how of join of step 's' cannot be 'ful'",
        ),
        ("steps: {s: {from: a, deduplicate: {key: []}}}", "key of deduplicate of step 's' is empty"),
        ("steps: {s: {from: a, state: {key: x, processor: 'a:B', timeout: 0 s}}}", "must be longer than 0"),
        (
            "steps: {s: {from: a, aggregate: {n: count(*)}, window: {column: t, size: 1 s, slide: 1 hour}}}",
            "slide of window of step 's' must be longer than 0 and at most the size, 1 second",
        ),
        ("steps: {s: {sql: select 1, expect: [a]}}", "expect of step 's' must be a mapping of names, not a list"),
        (
            "steps: {s: {sql: select 1, expect: {a: {check: x, otherwise: dorp}}}}",
            "cannot be 'dorp'; did you mean 'drop'?",
        ),
        ("sinks: {s: {from: a}}", "sink 's' has none of topic, files, table, lakehouse, spark, console, python"),
        ("sinks: {s: {from: a, topic: t, url: x}}", "url of sink 's' applies to table, not to topic"),
        (
            "sinks: {s: {from: a, topic: t, mode: upsert}}",
            "mode of sink 's' cannot be 'upsert'; one of",
        ),
        (
            "sinks: {s: {from: a, table: t, order_by: b}}",
            "sink 's' has order_by, which decides between rows of the same",
        ),
        (
            "sinks: {s: {from: a, table: t, mode: append}}",
            "mode of sink 's' applies to topic or spark",
        ),
        ("sinks: {s: {from: a, topic: t, order_by: b}}", "order_by of sink 's' applies to table, not to topic"),
        ("sinks: {s: {from: a, topic: t, deletes: x}}", "sink 's' writes tombstones, and has no key"),
        ("sinks: {s: {from: a, topic: t, format: avro}}", "Avro is supported in sources only"),
        ("sinks: {s: {from: a, topic: t, format: text}}", "sink 's' with format: text needs exactly one expression"),
        ("sinks: {s: {from: [a, b], console: true}}", "sink 's' has several inputs, and takes one"),
        ("sinks: {s: {from: a, console: false}}", "console of sink 's' must be true, not the boolean false"),
        ("views: {s: {from: a}}", "view 's' has none of key, aggregate"),
        ("views: {s: {from: a, key: b, by: c}}", "by of view 's' applies to aggregate, not to key"),
        ("trigger: fast", "trigger of the pipeline must be a duration, not 'fast'; write a number and a unit"),
        ("spark: {a: {b: c}}", "a in spark must be text or a number, not a mapping"),
        ("engine: fast", "engine of the pipeline cannot be 'fast'; one of: standard, realtime, batch"),
        ("dead_letters: a b", "dead_letters of the pipeline must be the name of a topic, not 'a b'"),
        ("pipeline: a b", "pipeline of the pipeline must be a name, not 'a b'"),
        ("warehouse: x.db", "the warehouse is not a URL"),
    ],
)
def test_mistakes_are_reported(text: str, said: str) -> None:
    name = "" if text.startswith("pipeline:") else "pipeline: p\n"
    assert [line for line in reported(name + text) if said in line], reported(name + text)


def test_all_mistakes_are_reported_together_in_the_order_of_the_file() -> None:
    lines = reported("pipeline: p\nengin: x\nsources:\n  s: {topik: a}\nsinks:\n  o: {from: s, topic: a b}\n")
    assert [line.split(": ")[0] for line in lines] == ["2:1", "4:6", "4:7", "6:23"]


def test_what_reads_something_broken_is_not_reported() -> None:
    assert not [
        line for line in reported_for("steps: {a: {sql: 1}, b: {sql: select * from a}}\n" + SINK) if "reads" in line
    ]


KEYS = (keys.PIPELINE, keys.SOURCE, keys.STEP, keys.SINK, keys.VIEW)
WORDS = sorted({*(name for each in KEYS for name in each.names), "path", "check", "column", "size", "a"})
PLACE = Place("f", 1, 1)


def as_node(tree: Any) -> Node:
    if isinstance(tree, dict):
        return MappingNode(tuple((Scalar(key, key, PLACE), as_node(value)) for key, value in tree.items()), PLACE)
    if isinstance(tree, list):
        return ListNode(tuple(as_node(each) for each in tree), PLACE)
    return Scalar(tree, "" if tree is None else str(tree), PLACE)


SCALARS = st.none() | st.booleans() | st.integers() | st.sampled_from(
    ["a", "a, b", "select * from a", "count(*)", "1 s", "json:x", "a INT", "csv", "earliest", "", "jdbc:x", "`", "a b"]
)  # fmt: skip
LIKELY_TREES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | mappings(WORDS, inner),
    max_leaves=25,
)


TREES = (
    st.fixed_dictionaries(
        {"pipeline": SCALARS},
        optional={
            section: mappings(["a", "b", "c", "1"], LIKELY_TREES) for section in ("sources", "steps", "sinks", "views")
        },
    )
    | LIKELY_TREES
)


@given(TREES)
def test_no_tree_crashes_the_parser_or_the_checks(tree: Any) -> None:
    from odradek.pipelines.planning.loading import finished

    problems = Problems()
    definition = finished(parse_pipeline(as_node(tree), problems), problems)
    assert definition.is_sound or definition.problems
