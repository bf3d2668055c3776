"""What a source reads of its topics: ranges of offsets and times, patterns, records that were deleted."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from odradek.pipelines.definition.model import Start
from odradek.pipelines.definition.vocabulary import StartAt
from odradek.pipelines.spark.engines.running import PipelineFailed
from odradek.pipelines.spark.reading.sources import Range, read_once
from odradek.pipelines.spark.writing.topics import prepare_topics
from tests.pipelines.spark.stage import Stage

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from odradek.pipelines.definition.model import Pipeline
    from tests.pipelines.spark.stage import Stage

pytestmark = pytest.mark.spark
NOON_MS = 1_767_268_800_000  # 2026-01-01T12:00Z
RAW = """
sources: {raw: {topic: "@in", format: bytes}}
sinks: {out: {from: raw, topic: "@out", value: [_value], format: bytes}}
"""


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


def at(time_ms: int) -> Start:
    return Start(StartAt.TIME, NOON_MS + time_ms)


def offsets(stage: Stage, **by_partition: int) -> Start:
    return Start(StartAt.OFFSETS, offsets={stage.topic("in"): {int(key[1:]): it for key, it in by_partition.items()}})


@pytest.mark.more
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


def test_streams_start_by_time_by_offset_and_of_a_pattern(stage: Stage) -> None:
    fill(stage)
    stage.create("in-more", 1)
    stage.produce("in-more", [b"more"])
    pipeline = stage.pipeline("""
        sources:
          late: {pattern: "@in.*", format: bytes, start: 2026-01-01T12:00:04Z}
          some: {topic: "@in", format: bytes, start: {"@in": {0: 5, 1: 4}}, max_records_per_batch: 2}
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
