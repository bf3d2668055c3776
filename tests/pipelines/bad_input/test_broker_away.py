"""A broker that stops in the middle of a stream and restarts: the stream continues, and no record is lost."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from odradek.pipelines.planning.rules import plan_again
from odradek.pipelines.spark.engines.standard import StandardEngine
from odradek.pipelines.spark.writing.topics import prepare_topics
from tests.pipelines.spark.stage import WAIT_S, Stage

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession

    from odradek.pipelines.spark.engines.running import Running
    from odradek.testing import RunningBroker

pytestmark = [pytest.mark.more, pytest.mark.spark]

RECORDS = 200
AWAY_S = 3.0
DEFINITION = """
warehouse: sqlite:///w.db
dead_letters: "@dead"
sources: {readings: {topic: "@in", schema: "id BIGINT"}}
sinks: {out: {from: readings, topic: "@out", key: id}}
views: {last: {from: readings, key: [id]}}
"""


def await_true(running: Running, condition: Callable[[], bool]) -> None:
    give_up_at = time.monotonic() + WAIT_S
    while not condition():
        running.raise_failure()
        assert time.monotonic() < give_up_at
        time.sleep(0.1)  # a poll's pause


@pytest.mark.timeout(300)
def test_a_broker_that_comes_back_finds_the_stream_waiting(
    spark: SparkSession, odradek_broker: RunningBroker, tmp_path: Path
) -> None:
    stage = Stage(spark, odradek_broker.bootstrap_servers, tmp_path)
    stage.create("in", 1)
    pipeline = stage.pipeline(DEFINITION)
    running = StandardEngine(spark, plan_again(pipeline), prepare_topics(pipeline)).start()

    def ids() -> set[int]:
        return {record.json["id"] for record in stage.read("out")}

    try:
        stage.produce("in", [*({"id": number} for number in range(RECORDS)), b"broken"])
        await_true(running, lambda: bool(ids()))
        odradek_broker.kill()
        back_at = time.monotonic() + AWAY_S
        await_true(running, lambda: time.monotonic() > back_at)
        odradek_broker.start()
        stage.produce("in", [*({"id": number} for number in range(RECORDS, 2 * RECORDS)), b"broken"])
        await_true(running, lambda: ids() == set(range(2 * RECORDS)))
        await_true(
            running, lambda: {each.headers["odradek-source"] for each in stage.read("dead")} == {"0:200", "0:401"}
        )
    finally:
        running.stop()
