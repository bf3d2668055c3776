"""Spark's connector and the Python source are interchangeable: same columns, same ranges, same checkpoints."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import pytest

from odradek.pipelines.definition.model import Start
from odradek.pipelines.definition.vocabulary import Connector, Engine, StartAt
from odradek.pipelines.spark import connector as connector_module
from odradek.pipelines.spark.connector import ConnectorMissing
from odradek.pipelines.spark.connector_choice import choose_connector
from odradek.pipelines.spark.engines.running import PipelineFailed
from odradek.pipelines.spark.launching import RunCallbacks, RunOptions, run_pipeline
from odradek.pipelines.spark.sessions.failures import PipelineError
from odradek.pipelines.spark.sources import Range, read_once
from odradek.pipelines.spark.writing.topics import prepare_topics
from tests.pipelines.spark.stage import Stage, renamed

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from odradek.pipelines.definition.model import Pipeline
    from odradek.testing import RunningBroker

pytestmark = pytest.mark.spark
NOON_MS = 1_767_268_800_000  # 2026-01-01T12:00Z
RAW = """
sources: {raw: {topic: "@in", format: bytes}}
sinks: {out: {from: raw, topic: "@out", value: [_value], format: bytes}}
"""


# Each read starts Python processes; tests/pipelines/spark/python_source checks the same without Spark.
SLOW_WITH_PYTHON = pytest.mark.parametrize(
    "stage", [Connector.JVM, pytest.param(Connector.PYTHON, marks=pytest.mark.soak)], indirect=True
)


@pytest.fixture(params=list(Connector))
def stage(
    request: pytest.FixtureRequest, spark: SparkSession, odradek_session_broker: RunningBroker, tmp_path: Path
) -> Stage:
    return Stage(spark, odradek_session_broker.bootstrap_servers, tmp_path, request.param)


def records(stage: Stage, pipeline: Pipeline, span: Range | None = None) -> DataFrame:
    partitions = prepare_topics(pipeline).partitions_of
    return read_once(stage.spark, pipeline.sources[0], pipeline, partitions, span)


def values(stage: Stage, topic: str) -> list[str]:
    return sorted((record.value or b"").decode() for record in stage.read(topic))


def fill(stage: Stage) -> None:
    """Six records in each of two partitions, a second apart."""
    stage.create("in")
    for partition in (0, 1):
        for number in range(6):
            stage.produce(
                "in", [f"{partition}{number}".encode()], partition=partition, timestamp=NOON_MS + number * 1000
            )


@pytest.mark.parametrize("stage", [Connector.JVM], indirect=True)
def test_the_columns_are_the_same(stage: Stage) -> None:
    stage.create("in")
    stage.produce("in", [b"\x00\xff", None, b""], key="k", timestamp=NOON_MS)
    stage.produce("in", [{"n": 1}, bytes(1_000_000)], partition=1)
    ours = stage.pipeline(RAW)
    frames = [records(stage, renamed(ours, connector=each)) for each in Connector]
    assert frames[0].schema == frames[1].schema
    found = [sorted(frame.collect(), key=lambda row: (row.partition, row.offset)) for frame in frames]
    assert len(found[0]) == 5
    assert found[0] == found[1]


def at(time_ms: int) -> Start:
    return Start(StartAt.TIME, NOON_MS + time_ms)


def offsets(stage: Stage, **by_partition: int) -> Start:
    return Start(StartAt.OFFSETS, offsets={stage.topic("in"): {int(key[1:]): it for key, it in by_partition.items()}})


@SLOW_WITH_PYTHON
def test_a_batch_reads_a_range(stage: Stage) -> None:
    fill(stage)
    pipeline = stage.pipeline(RAW)
    spans = [
        (Range(at(1500), at(4000)), ["02", "03", "12", "13"]),
        (Range(at(4500), at(60_000)), ["05", "15"]),
        (Range(at(60_000)), []),
        (Range(offsets(stage, p0=5), offsets(stage, p1=2)), ["05", "10", "11"]),
        (Range(None, offsets(stage, p0=1, p1=1)), ["00", "10"]),
    ]
    for span, expected in spans:
        assert sorted(row.value.decode() for row in records(stage, pipeline, span).collect()) == expected, span


@SLOW_WITH_PYTHON
def test_streams_start_by_time_by_offset_and_of_a_pattern(stage: Stage) -> None:
    fill(stage)
    stage.create("in-more", 1)
    stage.produce("in-more", [b"more"])
    pipeline = stage.pipeline("""
        sources:
          late: {pattern: "@in.*", format: bytes, start: 2026-01-01T12:00:04Z}
          some: {topic: "@in", format: bytes, start: {0: 5, 1: 4}, max_records_per_batch: 2}
        sinks:
          late: {from: late, topic: "@late", value: [_value], format: bytes}
          some: {from: some, topic: "@some", value: [_value], format: bytes}
        """)
    reports = stage.run(pipeline)
    assert values(stage, "late") == ["04", "05", "14", "15", "more"]
    assert values(stage, "some") == ["05", "14", "15"]
    assert max(report.rows or 0 for report in reports if report.flow == "some") == 2


@pytest.mark.soak
def test_a_batch_that_was_not_committed_is_repeated_as_it_was(stage: Stage) -> None:
    stage.create("in")
    stage.produce("in", [b"1", b"2"])
    pipeline = stage.pipeline(RAW)
    stage.run(pipeline)
    commits = stage.folder / "checkpoints" / "raw" / "commits"
    last = max(int(file.name) for file in commits.iterdir() if file.name.isdigit())
    (commits / str(last)).unlink()
    (commits / f".{last}.crc").unlink(missing_ok=True)
    stage.produce("in", [b"3"])
    stage.run(pipeline)
    written = stage.read("out")
    assert sorted((record.value, record.headers["odradek-id"][-16:]) for record in written) == sorted(
        (record.value, record.headers["odradek-id"][-16:]) for record in written[:2] * 2 + [written[-1]]
    )
    assert values(stage, "out") == ["1", "1", "2", "2", "3"]


@SLOW_WITH_PYTHON
def test_records_that_were_deleted_stop_the_pipeline_unless_it_may_go_on(stage: Stage) -> None:
    stage.create("in", 1)
    stage.produce("in", [b"1"])
    pipeline = stage.pipeline(RAW)
    stage.run(pipeline)
    stage.produce("in", [b"2", b"3"])
    stage.delete_records("in", 2)
    with pytest.raises(PipelineFailed, match=r"lost|missed|data loss"):
        stage.run(pipeline)
    assert values(stage, "out") == ["1"]
    stage.run(stage.pipeline(RAW.replace("format: bytes}}\nsinks", "format: bytes, on_data_loss: skip}}\nsinks")))
    assert values(stage, "out") == ["1", "3"]


@pytest.mark.parametrize("stage", [Connector.JVM], indirect=True)
@pytest.mark.parametrize(
    "connectors",
    [
        pytest.param((Connector.PYTHON, Connector.JVM), id="once"),
        pytest.param((Connector.PYTHON, Connector.JVM, Connector.PYTHON), id="and back", marks=pytest.mark.soak),
    ],
)
def test_a_checkpoint_goes_from_one_connector_to_the_other(stage: Stage, connectors: tuple[Connector, ...]) -> None:
    stage.create("in")
    pipeline = stage.pipeline(RAW)
    expected = []
    for number, connector in enumerate(connectors):
        stage.produce("in", [str(number).encode()], partition=number % 2)
        expected.append(str(number))
        stage.run(renamed(pipeline, connector=connector))
        assert values(stage, "out") == expected


@pytest.fixture
def no_registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(connector_module, "fetchers", list)


def test_without_a_registry_the_python_source_serves_and_says_so(no_registry: None) -> None:
    said: list[str] = []
    assert choose_connector(None, "9.9.9", said.append) == (Connector.PYTHON, [])
    assert len(said) == 1
    assert "neither mvn nor java is on the PATH; using the Python connector instead" in said[0]
    assert choose_connector(Connector.PYTHON, "9.9.9", said.append) == (Connector.PYTHON, [])
    with pytest.raises(ConnectorMissing):
        choose_connector(Connector.JVM, "9.9.9", said.append)


@pytest.mark.parametrize("stage", [Connector.PYTHON], indirect=True)
def test_the_realtime_engine_needs_sparks_own(stage: Stage, no_registry: None) -> None:
    stage.create("in")
    pipeline = dataclasses.replace(stage.pipeline(RAW), engine=Engine.REALTIME)

    def run(chosen: Pipeline) -> Any:
        run_pipeline(chosen, RunOptions(), lambda: True, RunCallbacks(lambda _line: None, lambda _report: None))

    with pytest.raises(PipelineError, match="the realtime engine cannot use the Python connector"):
        run(pipeline)
    with pytest.raises(ConnectorMissing, match="the realtime engine needs it; use --engine standard"):
        run(renamed(pipeline, connector=None))
