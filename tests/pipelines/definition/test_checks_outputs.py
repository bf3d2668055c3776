"""Sinks and views that write the same folder or the same rows of a table."""

from __future__ import annotations

import pytest

from odradek.pipelines.definition.vocabulary import Engine
from tests.pipelines.definition.definitions import reported_for

HEAD = """
pipeline: p
sources:
  a: {topic: a, schema: "id BIGINT, x BIGINT"}
  b: {topic: b, schema: "id BIGINT, x BIGINT"}
"""


def errors(ends: str, engine: Engine | None = None) -> list[str]:
    return [each for each in reported_for(ends, head=HEAD, engine=engine) if each.startswith("error")]


SHARED = "'q' writes the table or folder of sink 'o', and rows of one would replace those of the other; use another one"


@pytest.mark.parametrize(
    "ends",
    [
        "sinks: {o: {from: a, table: t, key: [id]}, q: {from: b, table: T, key: [id]}}",
        "sinks: {o: {from: a, table: t}, q: {from: b, table: t, changes: {key: [id], sequence: x}}}",
        "sinks: {o: {from: a, table: t, key: [id], order_by: x}, q: {from: b, table: t, key: [id], order_by: x}}",
        "sinks: {o: {from: a, table: q}}\nviews: {q: {from: b, key: [id]}}",
    ],
)
def test_two_outputs_do_not_write_the_same_rows(ends: str) -> None:
    assert [SHARED in each for each in errors(ends)] == [True]
    assert errors(ends, Engine.BATCH) == []


@pytest.mark.parametrize(
    "ends",
    [
        "sinks: {o: {from: a, files: {path: x, format: json}}, q: {from: a, files: {path: y, format: json}}}",
        "sinks: {o: {from: a, table: t}, q: {from: b, table: t}}",
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
    assert [SHARED in line for line in found] == [True] * is_refused, found


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
    assert [SHARED in line for line in found] == [True] * is_refused, found


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
    assert [SHARED in line for line in found] == [True] * is_refused, found
