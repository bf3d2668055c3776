"""Sinks and views that write the same folder or the same rows of a table."""

from __future__ import annotations

import pytest

from odradek.pipelines.definition.vocabulary import Engine
from tests.pipelines.definition.definitions import reported_for, sound

HEAD = """
pipeline: p
sources:
  a: {topic: a, schema: "id BIGINT, x BIGINT"}
  b: {topic: b, schema: "id BIGINT, x BIGINT"}
"""


def errors(ends: str, engine: Engine | None = None) -> list[str]:
    return [each for each in reported_for(ends, head=HEAD, engine=engine) if each.startswith("error")]


@pytest.mark.parametrize(
    ("ends", "said"),
    [
        ("sinks: {o: {from: a, files: {path: x, format: json}}, q: {from: b, files: {path: ./x/, format: parquet}}}",
         "sink 'q' writes the folder of sink 'o'"),
        ("sinks: {o: {from: a, table: t, key: [id]}, q: {from: b, table: T, key: [id]}}",
         "sink 'q' writes the table of sink 'o'"),
        ("sinks: {o: {from: a, table: t}, q: {from: b, table: t, changes: {key: [id], sequence: x}}}",
         "sink 'q' writes the table of sink 'o'"),
        ("sinks: {o: {from: a, table: t, key: [id], order_by: x}, q: {from: b, table: t, key: [id]}}",
         "sink 'q' writes the table of sink 'o'"),
        ("sinks: {o: {from: a, table: v}}\nviews: {v: {from: b, key: [id]}}", "view 'v' writes the table of sink 'o'"),
    ],
)  # fmt: skip
def test_two_outputs_do_not_write_the_same_rows(ends: str, said: str) -> None:
    found = errors(ends)
    assert [line for line in found if said in line and "; use another" in line], found
    assert errors(ends, Engine.BATCH) == []


@pytest.mark.parametrize(
    "ends",
    [
        "sinks: {o: {from: a, files: {path: x, format: json}}, q: {from: a, files: {path: y, format: json}}}",
        "sinks: {o: {from: a, table: t}, q: {from: b, table: t}}",
        "sinks: {o: {from: a, table: t, key: [id], order_by: x}, q: {from: b, table: t, key: [id], order_by: x}}",
        "sinks: {o: {from: a, table: t, key: [id]}, q: {from: b, table: t, key: [id], url: 'sqlite:///other.db'}}",
        "sinks: {o: {from: a, table: t}, q: {from: b, topic: t}}\nviews: {o: {from: b, key: [id]}}",
    ],
)
def test_outputs_of_different_rows_are_accepted(ends: str) -> None:
    assert errors(ends) == []


@pytest.mark.parametrize(
    ("path", "other", "is_refused"),
    [
        ("x", "y/../x", True),
        ("/x", "file:///x", True),
        ("/x/./z", "file:///x/y/../z/", True),
        ("s3://x/y", "s3://x/y/", True),
        ("s3://x/y", "/x/y", False),
        ("s3://x/y", "s3://x/z", False),
    ],
)
def test_a_folder_is_the_same_in_each_spelling(path: str, other: str, is_refused: bool) -> None:
    first, second = (f"files: {{path: '{each}', format: json}}" for each in (path, other))
    found = errors(f"sinks: {{o: {{from: a, {first}}}, q: {{from: b, {second}}}}}")
    assert ["sink 'q' writes the folder of sink 'o'" in line for line in found] == [True] * is_refused, found


@pytest.mark.parametrize(
    ("url", "other", "is_refused"),
    [
        ("sqlite:///p.db", None, True),
        ("sqlite:///x/../w.db", "sqlite+pysqlite:///w.db", True),
        ("sqlite:////tmp/w.db", "sqlite:////tmp/./w.db?timeout=5", True),
        ("postgres://h/d", "postgresql+psycopg://h/d", True),
        ("sqlite:///p.db", "sqlite:////p.db", False),
        ("postgresql://h/d", "postgresql://h/e", False),
    ],
)
def test_a_database_is_the_same_in_each_spelling(url: str, other: str | None, is_refused: bool) -> None:
    second = "" if other is None else f", url: '{other}'"
    found = errors(
        f"sinks: {{o: {{from: a, table: t, key: [id], url: '{url}'}}, q: {{from: b, table: t, key: [id]{second}}}}}"
    )
    assert ["sink 'q' writes the table of sink 'o'" in line for line in found] == [True] * is_refused, found


DELTA = "lakehouse: {format: delta, path: lake/t"
NAMED = "lakehouse: {format: delta, table: s.t"
ICEBERG = "lakehouse: {format: iceberg, table: lake.s.t"


@pytest.mark.parametrize(
    ("target", "other", "is_refused"),
    [
        (f"{DELTA}, key: [id]}}", f"{DELTA}, key: [id]}}", True),
        (f"{DELTA}/../t}}", f"{DELTA}, key: [id]}}", True),
        (f"{NAMED}, key: [id]}}", f"{NAMED.replace('s.t', 'S.T')}}}", True),
        (f"{ICEBERG}, key: [id]}}", f"{ICEBERG}}}", True),
        (f"{DELTA}}}", f"{DELTA}}}", False),
        (f"{DELTA}, key: [id]}}", f"{DELTA}2, key: [id]}}", False),
        (f"{DELTA}, key: [id]}}", f"{NAMED}, key: [id]}}", False),
    ],
)
def test_two_sinks_do_not_replace_rows_of_one_lakehouse_table(target: str, other: str, is_refused: bool) -> None:
    spark = "spark: {spark.jars: x.jar, spark.sql.catalog.lake: org.apache.iceberg.spark.SparkCatalog}\n"
    found = errors(f"{spark}sinks: {{o: {{from: a, {target}}}, q: {{from: b, {other}}}}}")
    assert ["sink 'q' writes the table of sink 'o'" in line for line in found] == [True] * is_refused, found


PAIR = """
pipeline: p
sources:
  a: {topic: a, schema: "id BIGINT, x BIGINT, at TIMESTAMP", watermark: {column: at, delay: 1 s}}
  b: {topic: b, schema: "id BIGINT, y BIGINT, then TIMESTAMP", watermark: {column: then, delay: 1 s}}
"""


@pytest.mark.parametrize(
    ("ends", "said"),
    [
        ("sinks: {o: {from: a, table: t, key: [id], order_by: [at, x]}}", "'o' is ordered by several columns, at, x"),
        ("views: {v: {from: a, key: [id], order_by: [at, x]}}", "'v' is ordered by several columns, at, x"),
        ("steps: {s: {from: a, join: {stream: b, on: [id], within: forever}}}\nsinks: {o: {from: s, topic: t}}",
         "the join of step 's' would keep all rows of both streams for ever; bound it: within: 1 hour"),
    ],
)  # fmt: skip
def test_what_the_engines_do_not_run_is_refused(ends: str, said: str) -> None:
    (found,) = [each for each in reported_for(ends, head=PAIR) if each.startswith("error")]
    assert said in found


def test_one_column_in_a_list_orders_rows_as_it_does_alone() -> None:
    ends = "views: {v: {from: a, key: [id], order_by: %s}}\n"
    alone, listed = (sound(PAIR + ends % each) for each in ("at", "[at]"))
    assert alone.views == listed.views
