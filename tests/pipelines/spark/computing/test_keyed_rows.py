"""A stream drops the duplicates that a batch drops, however it is cut into batches."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest

from odradek.pipelines.definition.operations import Deduplication
from odradek.pipelines.definition.vocabulary import Duration
from odradek.pipelines.spark.computing.keyed_rows import (
    SHUFFLE_PARTITIONS,
    SORTING,
    deduplicated,
    sorts_batches,
)
from odradek.pipelines.spark.frames import event_times_of
from tests.pipelines.spark.computing.streams import stream_of, written
from tests.pipelines.spark.file_batches import seconds_after_noon

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

SCHEMA = "id BIGINT, n BIGINT, at TIMESTAMP"
UNCHECKED = "spark.sql.streaming.unsupportedOperationCheck"


def drawn() -> list[list[dict[str, Any]]]:
    draw = random.Random(3)
    return [
        [
            {"id": draw.randrange(3), "n": 10 * batch + number, "at": seconds_after_noon(6 * batch + draw.randrange(8))}
            for number in range(8)
        ]
        for batch in range(3)
    ]


@pytest.mark.more(but="4000-1")
@pytest.mark.parametrize(("within_ms", "partitions"), [(4_000, "1"), (4_000, "3"), (None, "1")])
def test_a_stream_and_a_batch_drop_the_same_rows(
    spark: SparkSession, tmp_path: Path, within_ms: int | None, partitions: str
) -> None:
    session = spark.newSession()
    session.conf.set(SHUFFLE_PARTITIONS, partitions)
    session.conf.set(UNCHECKED, "false")  # by the engine, once Spark has checked the query without its sort
    operation = Deduplication("rows", ("id",), None if within_ms is None else Duration(within_ms))
    stream = stream_of(session, tmp_path / "rows", drawn(), SCHEMA, "at")
    made = deduplicated(stream.selectExpr("*", "at as again"), operation, "at")
    assert list(event_times_of(made)) == ["at"]
    assert made.columns == ["id", "n", "at", "again"]
    rows = session.createDataFrame([row for batch in drawn() for row in batch], "id BIGINT, n BIGINT, at STRING")
    batch = deduplicated(rows.selectExpr("id", "n", "timestamp(at) as at").coalesce(1), operation, "at")
    expected = sorted((row.id, row.n) for row in batch.collect())
    assert sorted(row[:2] for row in written(made, tmp_path / "checkpoint")) == expected
    assert 3 <= len(expected) < 24


def test_columns_keep_their_types_and_their_metadata(spark: SparkSession) -> None:
    divided = spark.newSession()
    divided.conf.set(SHUFFLE_PARTITIONS, "3")
    operation = Deduplication("rows", ("id",), Duration(60_000))
    columns = ("value as id", "timestamp as at", "parse_json('1') as v", "interval '1' month as i", "'abc' as c")
    for session in (spark, divided):
        rate = session.readStream.format("rate").load().selectExpr(*columns).withWatermark("at", "1 minute")
        stream = rate.withMetadata("c", {"__CHAR_VARCHAR_TYPE_STRING": "char(3)"})
        made = deduplicated(stream, operation, "at")
        assert described(made) == described(stream)


def described(frame: DataFrame) -> list[tuple[Any, ...]]:
    return [(each.name, each.dataType, each.metadata) for each in frame.schema.fields]


@pytest.mark.more
def test_keys_are_forgotten_when_the_watermark_has_passed_their_period(spark: SparkSession, tmp_path: Path) -> None:
    times = [[0] * 10, [1000], [1001]]
    batches = [
        [{"id": 100 * number + each, "n": 0, "at": seconds_after_noon(at)} for each, at in enumerate(batch)]
        for number, batch in enumerate(times)
    ]
    made = deduplicated(
        stream_of(spark, tmp_path / "rows", batches, SCHEMA, "at"),
        Deduplication("rows", ("id",), Duration(60_000)),
        "at",
    )
    writer = made.writeStream.foreachBatch(lambda batch, _number: batch.write.format("noop").mode("append").save())
    query = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True).start()
    query.awaitTermination()
    assert query.lastProgress is not None
    assert [each.numRowsTotal for each in query.lastProgress.stateOperators] == [2, 2]


def test_only_several_partitions_need_a_sort(spark: SparkSession) -> None:
    session = spark.newSession()
    session.conf.set(SHUFFLE_PARTITIONS, "1")
    assert not sorts_batches(session)
    session.conf.set(SHUFFLE_PARTITIONS, "2")
    assert sorts_batches(session)
    session.conf.set(SORTING, "false")
    assert not sorts_batches(session)
