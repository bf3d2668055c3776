"""What the realtime engine refuses besides the constructs of docs/rules/12-realtime.md, and ends of one target."""

from __future__ import annotations

import pytest

from odradek.pipelines.definition.vocabulary import Engine
from tests.pipelines.definition.definitions import reported, reported_for


@pytest.mark.parametrize(
    ("keys", "reason"),
    [
        (
            "format: avro, schema: {type: record, name: b, fields: [{name: n, type: long}]}",
            "it has Avro, which is decoded in Python",
        ),
        (
            "schema: n BIGINT, max_records_per_batch: 5",
            "it has max_records_per_batch, and records have no batches",
        ),
    ],
)
def test_records_that_real_time_mode_cannot_read_are_refused(keys: str, reason: str) -> None:
    text = f"pipeline: p\nengine: realtime\nsources: {{s: {{topic: t, {keys}}}}}\nsinks: {{o: {{from: s, topic: o}}}}\n"
    assert reported(text) == [
        f"3:11: error OP018: the realtime engine does not run source 's': {reason}; use engine: standard"
    ]


TWO = """
pipeline: p
spark: {spark.jars: x.jar, spark.sql.catalog.lake: org.apache.iceberg.spark.SparkCatalog}
sources:
  a: {topic: a, schema: "id BIGINT, x BIGINT"}
  b: {topic: b, schema: "id BIGINT, x BIGINT"}
"""
SHARED = "error: sink 'q' writes the table or folder of sink 'o', and rows of one would replace those of the other"
DELTA = "lakehouse: {format: delta, path: lake/t"
NAMED = "lakehouse: {format: delta, table: s.t"
ICEBERG = "lakehouse: {format: iceberg, table: lake.s.t"


def refusals(target: str, other: str, engine: Engine | None = None) -> list[str]:
    sinks = f"sinks: {{o: {{from: a, {target}}}, q: {{from: b, {other}}}}}"
    return [each.partition(";")[0] for each in reported_for(sinks, engine, TWO) if each.startswith("error")]


def keyed(url: str) -> str:
    return f"table: t, key: [id], url: '{url}'"


def files(path: str) -> str:
    return f"files: {{path: '{path}', format: json}}"


@pytest.mark.parametrize(
    ("target", "other"),
    [
        ("table: t, key: [id]", "table: T, key: [id]"),
        ("table: t", "table: t, changes: {key: [id], sequence: x}"),
        ("table: t, key: [id], order_by: x", "table: t, key: [id], order_by: x"),
        (keyed("sqlite:///p.db"), "table: t, key: [id]"),
        (keyed("sqlite:///x.db"), keyed("sqlite:///./x.db")),
        (keyed("postgresql://u@h/d"), keyed("postgresql+psycopg://u@h/d")),
        (keyed("postgres://u@h/d"), keyed("postgresql://u@h/d")),
        (files("x"), files("y/../x")),
        (files("/data/out"), files("file:///data/out")),
        (files("s3://x/y"), files("s3://x/y/")),
        (f"{DELTA}/../t}}", f"{DELTA}, key: [id]}}"),
        (f"{NAMED}, key: [id]}}", f"{NAMED.replace('s.t', 'S.T')}}}"),
        (f"{ICEBERG}, key: [id]}}", f"{ICEBERG}}}"),
    ],
)
def test_two_ends_of_one_target_are_refused(target: str, other: str) -> None:
    assert refusals(target, other) == [SHARED]
    assert refusals(target, other, Engine.BATCH) == []


@pytest.mark.parametrize(
    ("target", "other"),
    [
        ("table: t", "table: t"),
        ("table: t, key: [id]", keyed("sqlite:///other.db")),
        (keyed("postgresql://h/d"), keyed("postgresql://h/e")),
        (files("x"), files("y")),
        (files("s3://x/y"), files("/x/y")),
        (f"{DELTA}}}", f"{DELTA}}}"),
        (f"{DELTA}, key: [id]}}", f"{DELTA}2, key: [id]}}"),
        (f"{DELTA}, key: [id]}}", f"{NAMED}, key: [id]}}"),
        (f"{ICEBERG}, key: [id]}}", f"{ICEBERG.replace('s.t', 'S.T')}, key: [id]}}"),
    ],
)
def test_ends_of_different_targets_are_accepted(target: str, other: str) -> None:
    assert refusals(target, other) == []
