"""A private name of Spark that is missing costs speed and a warning, and changes no result."""

from __future__ import annotations

import logging
import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from py4j.java_gateway import JavaMember
from pyspark.sql import functions as F  # noqa: N812 - its usual name

import odradek.pipelines
from odradek.pipelines.spark.computing.row_program import optimized, redundant_rules
from odradek.pipelines.spark.engines.flow_queries import CHECKSUMS, checkpoint_settings
from odradek.pipelines.spark.engines.progress import NO_BATCH, progress_after
from odradek.pipelines.spark.sessions import private_names
from odradek.pipelines.spark.sessions.private_names import (
    ANALYSING,
    CHECKPOINTS,
    CLASSES,
    NAMES,
    PLANNING,
    PROGRESS,
    KeptClass,
    keep_classes,
    names_of,
    private,
)
from tests.waiting import eventually

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.pipelines.spark.stage import Stage


PLANNED = [key for key, name in NAMES.items() if name.use is PLANNING]
STORED = [key for key, name in NAMES.items() if name.use is CHECKPOINTS]
DEFINITION = """
sources: {readings: {topic: "@in", schema: "id BIGINT, pressure DOUBLE"}}
steps: {high: {sql: "select id, pressure * 2 as twice from readings where pressure > 1"}}
sinks: {all: {from: high, topic: "@out", key: id}}
"""


@pytest.fixture(autouse=True)
def nothing_warned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(private_names, "_warned", set())


def remove(monkeypatch: pytest.MonkeyPatch, key: str) -> None:
    """Changes the name as a release of Spark would."""
    monkeypatch.setitem(NAMES, key, replace(NAMES[key], path=f"{NAMES[key].path}Renamed"))


@pytest.mark.more
@pytest.mark.spark
@pytest.mark.parametrize("key", PLANNED)
def test_without_a_name_of_the_planner_plans_are_those_of_spark(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, key: str
) -> None:
    frame = stage.spark.range(3).selectExpr("id + 1 as more").where("more > 1")
    remove(monkeypatch, key)
    with caplog.at_level(logging.WARNING):
        better, rules = optimized(frame), redundant_rules(stage.spark)
    assert better.collect() == frame.collect()
    assert better is frame or rules == ""
    assert len(caplog.records) == 1
    assert PLANNING.fallback in caplog.text


@pytest.mark.spark
@pytest.mark.parametrize("key", STORED)
def test_without_a_name_of_checkpoints_they_are_those_of_spark(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, key: str
) -> None:
    pipeline = replace(stage.pipeline(DEFINITION), checkpoints="relative")
    remove(monkeypatch, key)
    with caplog.at_level(logging.WARNING):
        settings = checkpoint_settings(stage.spark, pipeline)
    assert set(settings) <= {CHECKSUMS}
    assert CHECKPOINTS.fallback in caplog.text


@pytest.mark.spark
def test_without_the_name_of_a_query_all_progress_is_read(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    stream = stage.spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 1).load()
    query = stream.writeStream.format("noop").start()
    eventually(lambda: query.lastProgress is not None and query.lastProgress.batchId >= 3)
    query.stop()
    expected = [each.json for each in query.recentProgress if each.batchId > 1]
    assert [each.json for each in progress_after(query, 1)] == expected
    assert len(progress_after(query, NO_BATCH)) == len(query.recentProgress) > len(expected) >= 2
    assert caplog.text == ""
    remove(monkeypatch, "query")
    with caplog.at_level(logging.WARNING):
        assert [each.json for each in progress_after(query, 1)] == expected
    assert PROGRESS.fallback in caplog.text


def run_without(stage: Stage, monkeypatch: pytest.MonkeyPatch, keys: list[str]) -> None:
    stage.create("in", 1)
    stage.produce("in", [{"id": 1, "pressure": 1.0}, {"id": 2, "pressure": 2.5}])
    for key in keys:
        remove(monkeypatch, key)
    stage.run(stage.pipeline(DEFINITION))
    assert [record.json for record in stage.read("out")] == [{"id": 2, "twice": 5.0}]


@pytest.mark.spark
def test_a_pipeline_runs_without_all_of_them(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    run_without(stage, monkeypatch, [key for key, name in NAMES.items() if name.use is not ANALYSING])


@pytest.mark.spark
@pytest.mark.soak
@pytest.mark.parametrize("key", [key for key, name in NAMES.items() if name.use is not ANALYSING])
def test_a_pipeline_runs_without_each_of_them(stage: Stage, monkeypatch: pytest.MonkeyPatch, key: str) -> None:
    run_without(stage, monkeypatch, [key])


def test_no_other_file_uses_private_names() -> None:
    folder = Path(next(iter(odradek.pipelines.__path__)))
    private = re.compile(r"\._j(?:df|vm|sc|sparkSession|sq)\b|\bsparkContext\._")
    found = [file.name for file in folder.rglob("*.py") if private.search(file.read_text())]
    assert found == []


class Asked:
    """A Java class that counts the questions."""

    def __init__(self) -> None:
        self.count = 0

    def __getattr__(self, name: str) -> Any:
        self.count += 1
        client = SimpleNamespace(converters=None, gateway_property=SimpleNamespace(pool=None))
        return JavaMember(name, None, "z:it", client) if name == "method" else 7


def test_a_method_is_looked_up_once_and_a_value_each_time() -> None:
    asked = Asked()
    kept = KeptClass(asked)
    assert kept.method is kept.method
    assert asked.count == 1
    assert (kept.value, kept.value) == (7, 7)
    assert asked.count == 3


@pytest.mark.spark
def test_a_session_keeps_the_classes_of_pyspark(spark: SparkSession) -> None:
    view = private(spark, "jvm")
    kept = {name: vars(view)[name] for name in CLASSES}
    assert all(isinstance(each, KeptClass) for each in kept.values())
    keep_classes(spark)
    assert {name: vars(view)[name] for name in CLASSES} == kept
    (row,) = spark.range(1).select((F.lit(2) + F.col("id")).alias("two"), F.upper(F.lit("a")).alias("a")).collect()
    assert (row.two, row.a) == (2, "A")
    assert "upper" in vars(kept["org.apache.spark.sql.functions"])


def test_the_packages_of_a_class_belong_to_its_name() -> None:
    assert names_of("a.b.Klass.member") == ["a.b.Klass", "member"]
    assert names_of("a.b.Klass") == ["a.b.Klass"]
    assert names_of("_jdf") == ["_jdf"]
    assert all(len(names_of(name.path)) <= 2 for name in NAMES.values())
