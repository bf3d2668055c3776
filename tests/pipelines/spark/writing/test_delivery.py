"""Exactly once to topics: a replayed batch writes nothing, and a new checkpoint everything."""

from __future__ import annotations

import json
import shutil
import time
import uuid
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
import sqlalchemy as sa
from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition
from confluent_kafka.admin import AdminClient

from odradek.pipelines.operating.backoff import Retry
from odradek.pipelines.planning.rules import plan_again
from odradek.pipelines.spark.engines.running import PipelineFailed
from odradek.pipelines.spark.engines.standard import StandardEngine
from odradek.pipelines.spark.sessions.failures import retry_of
from odradek.pipelines.spark.writing.databases import reading
from odradek.pipelines.spark.writing.delivery import SPLITS, marks_topic
from odradek.pipelines.spark.writing.topics import prepare_topics
from tests.pipelines.committed import committed_records
from tests.pipelines.spark.stage import Stage, renamed

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession

    from odradek.pipelines.definition.model import Pipeline
    from odradek.testing import RunningBroker
    from tests.jvm.shared_kafka import KafkaAddress

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

APACHE_KAFKA = pytest.param("apache_kafka", marks=[pytest.mark.jvm, pytest.mark.oracle], id="apache-kafka")
ODRADEK = pytest.param("odradek_session_broker", id="odradek")

DEFINITION = """
delivery: exactly_once
dead_letters: "@dead"
sources:
  readings: {topic: "@in", schema: "id BIGINT, pressure DOUBLE"}
steps:
  high: {sql: "select id, pressure from readings where pressure > 100"}
  totals: {from: readings, by: [id], aggregate: {rows: count(*)}}
sinks:
  all: {from: readings, topic: "@out", key: id}
  warnings: {from: high, topic: "@warnings", key: id, kafka: {linger.ms: "1"}}
  totals: {from: totals, topic: "@totals", key: id, mode: update}
"""
PARTITIONS = 4
ROWS = [{"id": number, "pressure": number * 10.0} for number in range(60)]
FLOWS = ("readings", "totals-changes")
ONE_FLOW = "".join(line for line in DEFINITION.splitlines(keepends=True) if "totals" not in line)


@pytest.fixture(params=[APACHE_KAFKA, ODRADEK])
def kafka_stage(request: pytest.FixtureRequest, spark: SparkSession, tmp_path: Path) -> Stage:
    broker: KafkaAddress | RunningBroker = request.getfixturevalue(request.param)
    return Stage(spark, broker.bootstrap_servers, tmp_path)


def filled(stage: Stage, definition: str = DEFINITION) -> Pipeline:
    stage.create("in", PARTITIONS)
    for partition in range(PARTITIONS):
        stage.produce("in", ROWS[partition::PARTITIONS], partition=partition)
    stage.produce("in", [b"{no"])
    return stage.pipeline(definition, f"p{uuid.uuid4().hex[:8]}")


def ids(stage: Stage, name: str) -> Counter[Any]:
    found = committed_records(stage.bootstrap_servers, stage.topic(name))
    return Counter(json.loads(message.value() or b"null")["id"] for message in found)


def forget_commits(stage: Stage) -> None:
    """Removes the commit of a batch, as if the driver had died between writing the batch and committing it."""
    for flow in FLOWS:
        assert (stage.folder / "checkpoints" / flow / "commits" / "0").exists()
        shutil.rmtree(stage.folder / "checkpoints" / flow / "commits")


def leave_workers(stage: Stage) -> None:
    """Forces new Python workers, by another environment: Spark reuses workers, and these cache their producers."""
    stage.spark.sparkContext.environment["RUN_OF_TEST"] = uuid.uuid4().hex


def check_each_once(stage: Stage) -> None:
    assert ids(stage, "out") == Counter(row["id"] for row in ROWS)
    assert ids(stage, "warnings") == Counter(row["id"] for row in ROWS if row["pressure"] > 100)
    assert ids(stage, "totals") == Counter(row["id"] for row in ROWS)
    assert len(committed_records(stage.bootstrap_servers, stage.topic("dead"))) == 1


def test_a_batch_that_comes_again_writes_nothing(kafka_stage: Stage) -> None:
    pipeline = filled(kafka_stage)
    assert [report.number for report in kafka_stage.run(pipeline)] == [0, 0]
    check_each_once(kafka_stage)
    forget_commits(kafka_stage)
    kafka_stage.produce("in", [{"id": 99, "pressure": 1}])
    numbers = sorted((report.flow, report.number) for report in kafka_stage.run(pipeline))
    assert numbers == [(flow, number) for flow in FLOWS for number in (0, 1)]
    assert ids(kafka_stage, "out") == Counter([*(row["id"] for row in ROWS), 99])
    assert ids(kafka_stage, "totals") == Counter([*(row["id"] for row in ROWS), 99])


@pytest.mark.soak
def test_of_a_batch_that_is_half_written_the_rest_is_written(kafka_stage: Stage) -> None:
    """Only the records of a split that was not committed are written again."""
    pipeline = filled(kafka_stage)
    kafka_stage.run(pipeline)
    forget_commits(kafka_stage)
    marks, group = marks_topic(pipeline), f"odradek.{pipeline.name}.readings"
    admin = AdminClient({"bootstrap.servers": kafka_stage.bootstrap_servers})
    slots = [TopicPartition(marks, split) for split in range(SPLITS)]
    offsets = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group, slots)])[group].result(60)
    written = {slot.partition: slot for slot in offsets.topic_partitions if slot.offset == 1}
    assert len(written) > 1
    lost = TopicPartition(marks, max(written), 0, metadata=written[max(written)].metadata)
    admin.alter_consumer_group_offsets([ConsumerGroupTopicPartitions(group, [lost])])[group].result(60)
    leave_workers(kafka_stage)
    kafka_stage.run(pipeline)
    counts = ids(kafka_stage, "out")
    assert set(counts.values()) == {1, 2}
    by_partition = {row["id"]: number % PARTITIONS for number, row in enumerate(ROWS)}
    again = {by_partition[found] for found, count in counts.items() if count == 2}
    assert all(counts[found] == (2 if partition in again else 1) for found, partition in by_partition.items())


@pytest.mark.more
def test_an_earlier_run_with_another_checkpoint_stops(kafka_stage: Stage) -> None:
    pipeline = filled(kafka_stage, ONE_FLOW)
    running = StandardEngine(kafka_stage.spark, plan_again(pipeline), prepare_topics(pipeline)).start()
    try:
        await_condition(lambda: ids(kafka_stage, "out") == Counter(row["id"] for row in ROWS))
        # With the last topic of the batch: a task that is fenced while it writes fails for another reason.
        await_condition(
            lambda: set(ids(kafka_stage, "warnings")) == {row["id"] for row in ROWS if row["pressure"] > 100}
        )
        later = replace(kafka_stage, spark=kafka_stage.spark.newSession())
        later.run(renamed(pipeline, checkpoints="others"))
        written = ids(kafka_stage, "out")
        assert written == Counter([row["id"] for row in ROWS] * 2)  # another checkpoint counts its batches from 0
        kafka_stage.produce("in", [{"id": 99, "pressure": 1}])
        with pytest.raises(PipelineFailed, match="another run of this pipeline took over") as stopped:
            running.wait(lambda: False)
        assert retry_of(stopped.value) is Retry.NEVER
        assert ids(kafka_stage, "out") == written
    finally:
        running.stop()


TABLES_ONLY = """
delivery: exactly_once
warehouse: sqlite:///w.db
sources: {readings: {topic: "@in", schema: "id BIGINT, pressure DOUBLE"}}
sinks: {all: {from: readings, table: all_rows}}
"""


@pytest.mark.soak
def test_an_earlier_run_that_writes_tables_only_stops(stage: Stage) -> None:
    def written() -> int:
        with reading(f"sqlite:///{stage.folder / 'w.db'}") as connection:
            return int(connection.execute(sa.text("select count(*) from all_rows")).scalar_one())

    stage.create("in")
    stage.produce("in", ROWS[:2])
    pipeline = stage.pipeline(TABLES_ONLY, f"p{uuid.uuid4().hex[:8]}")
    stage.run(pipeline)
    running = StandardEngine(stage.spark, plan_again(pipeline), prepare_topics(pipeline)).start()
    try:
        later = replace(stage, spark=stage.spark.newSession())
        later.run(renamed(pipeline, checkpoints="others"))
        assert written() == 4  # another checkpoint counts its batches from 0
        stage.produce("in", ROWS[2:3])
        with pytest.raises(PipelineFailed, match="another run of this pipeline took over") as stopped:
            running.wait(lambda: False)
        assert retry_of(stopped.value) is Retry.NEVER
        assert written() == 4
    finally:
        running.stop()


def await_condition(is_met: Callable[[], bool]) -> None:
    give_up_at = time.monotonic() + 120
    while not is_met():
        assert time.monotonic() < give_up_at
        time.sleep(0.2)  # a poll's pause


@pytest.mark.soak
def test_a_batch_engine_writes_everything_in_one_transaction(kafka_stage: Stage) -> None:
    kafka_stage.run_once(filled(kafka_stage))
    check_each_once(kafka_stage)
