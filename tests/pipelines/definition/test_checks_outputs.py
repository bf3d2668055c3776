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


DELTA = "lakehouse: {format: delta, path: lake/t"
NAMED = "lakehouse: {format: delta, table: s.t"
ICEBERG = "lakehouse: {format: iceberg, table: lake.s.t"
CHANGES = ", changes: {key: [id], sequence: x}"


@pytest.mark.parametrize(
    ("target", "other", "is_refused"),
    [
        (f"{DELTA}, key: [id]}}", f"{DELTA}, key: [id]}}", True),
        (f"{DELTA}/../t}}", f"{DELTA}, key: [id]}}", True),
        (f"{DELTA}}}{CHANGES}", f"{DELTA}, key: [id]}}", True),
        (f"{NAMED}, key: [id]}}", f"{NAMED.replace('s.t', 'S.T')}}}", True),
        (f"{ICEBERG}, key: [id]}}", f"{ICEBERG}}}", True),
        (f"{DELTA}}}", f"{DELTA}}}", False),
        (f"{DELTA}}}{CHANGES}", f"{DELTA}}}{CHANGES}", False),
        (f"{DELTA}, key: [id]}}", f"{DELTA}2, key: [id]}}", False),
        (f"{DELTA}, key: [id]}}", f"{NAMED}, key: [id]}}", False),
    ],
)
def test_two_sinks_do_not_replace_rows_of_one_lakehouse_table(target: str, other: str, is_refused: bool) -> None:
    spark = "spark: {spark.jars: x.jar, spark.sql.catalog.lake: org.apache.iceberg.spark.SparkCatalog}\n"
    found = errors(f"{spark}sinks: {{o: {{from: a, {target}}}, q: {{from: b, {other}}}}}")
    assert ["sink 'q' writes the table of sink 'o'" in line for line in found] == [True] * is_refused, found
