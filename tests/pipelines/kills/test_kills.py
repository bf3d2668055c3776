"""Repeated SIGKILL at random times: no record is lost, and exactly-once outputs have no duplicates.

`PIPELINE_KILLS=20` has more rounds; `PIPELINE_KILLS_SEED` repeats the moments of a run as far as clocks allow.
"""

from __future__ import annotations

import json
import os
import random
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from odradek.testing import RunningBroker
from tests.jvm.apache_kafka import ApacheKafka
from tests.pipelines.committed import committed_records, header_of
from tests.pipelines.kills.scene import Scene, written_files

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

ROUNDS = int(os.environ.get("PIPELINE_KILLS", "0"))
SEED = int(os.environ.get("PIPELINE_KILLS_SEED", "0")) or random.SystemRandom().randint(1, 1_000_000)
pytestmark = [pytest.mark.spark, pytest.mark.timeout(900 + 120 * ROUNDS)]

EVERYTHING = """
pipeline: NAME
bootstrap_servers: SERVERS
checkpoints: checkpoints
warehouse: sqlite:///w.db
dead_letters: "@dead"
sources:
  readings: {topic: "@in", schema: "id BIGINT, pump BIGINT"}
steps:
  odd: {sql: select id from readings where id % 2 = 1}
sinks:
  all: {from: readings, topic: "@out", key: pump}
  odd: {from: odd, topic: "@odd", value: [id]}
  archive: {from: readings, files: {path: archive, format: json}}
  table: {from: readings, table: every_row}
views:
  latest: {from: readings, key: [pump], order_by: id}
  totals: {from: readings, by: [pump], aggregate: {events: count(*), added: sum(id)}}
"""
TABLES = {"every_row": "id, pump", "latest": "pump, id", "totals": "pump, events, added"}

EXACTLY_ONCE = """
pipeline: NAME
bootstrap_servers: SERVERS
delivery: exactly_once
checkpoints: checkpoints
dead_letters: "@dead"
sources:
  readings: {topic: "@in", schema: "id BIGINT, pump BIGINT", max_records_per_batch: LIMIT}
steps:
  odd: {sql: select id from readings where id % 2 = 1}
  totals: {from: readings, by: [pump], aggregate: {events: count(*)}}
sinks:
  all: {from: readings, topic: "@out", key: pump}
  odd: {from: odd, topic: "@odd", value: [id]}
  totals: {from: totals, topic: "@totals", mode: update}
"""
LIMIT = 400
BATCHES = 3  # minimum number of batches before the broker is killed
# The controller rejects the registration of a killed broker until its old session expires.
SOON_BACK = {"broker.session.timeout.ms": "2000", "broker.heartbeat.interval.ms": "500"}


def values(scene: Scene, topic: str) -> list[Any]:
    return [json.loads(each.value() or b"null") for each in committed_records(scene.servers, scene.topic(topic))]


def check_at_least_once(scene: Scene, topic: str, expected: list[int]) -> None:
    """Checks that every record is there, and that duplicates have the id of the first copy."""
    found = committed_records(scene.servers, scene.topic(topic))
    ids = {header_of(each, "odradek-id") for each in found}
    assert {json.loads(each.value() or b"")["id"] for each in found} == set(expected)
    assert len(ids) == len(expected)


@pytest.mark.soak
def test_nothing_is_lost_when_driver_and_broker_are_killed(tmp_path: Path, spark: SparkSession) -> None:
    print(f"PIPELINE_KILLS_SEED={SEED}")
    with RunningBroker() as broker:
        scene = Scene(tmp_path, broker.bootstrap_servers, EVERYTHING, SEED)
        for turn in range(ROUNDS or 1):
            running = scene.start()
            try:
                scene.run_to_a_random_moment(running)
                if turn % 2 == 0:
                    broker.kill()
                    broker.start()
                    scene.run_on_or_end(running)
            finally:
                running.kill()
        scene.finish_here(spark)
        check_at_least_once(scene, "out", scene.good)
        check_at_least_once(scene, "odd", [number for number in scene.good if number % 2])
        dead = committed_records(scene.servers, scene.topic("dead"))
        assert len({header_of(each, "odradek-id") for each in dead}) == scene.sent - len(scene.good)
        lines = [line for file in written_files(tmp_path / "archive") for line in file.read_text().splitlines()]
        assert Counter(json.loads(line)["id"] for line in lines) == Counter(scene.good)
        assert Counter(row[0] for row in scene.rows("w.db", "select id from every_row")) == Counter(scene.good)
        scene.recompute(spark, "batch.db")
        for table, columns in TABLES.items():
            query = f"select {columns} from {table} order by {columns}"
            assert scene.rows("w.db", query) == scene.rows("batch.db", query)


@pytest.mark.soak
@pytest.mark.parametrize("kind", [pytest.param("apache-kafka", marks=pytest.mark.jvm), "odradek"])
def test_exactly_once_holds_when_driver_and_broker_are_killed(
    request: pytest.FixtureRequest, tmp_path: Path, kind: str
) -> None:
    """Kills the driver while records arrive, and then the broker of a pipeline that is restarted after failures."""
    print(f"PIPELINE_KILLS_SEED={SEED}")
    if kind == "apache-kafka":
        request.getfixturevalue("jvm")
    with RunningBroker() if kind == "odradek" else ApacheKafka(SOON_BACK) as kafka:
        scene = Scene(tmp_path, kafka.bootstrap_servers, EXACTLY_ONCE.replace("LIMIT", str(LIMIT)), SEED)

        def kill_broker() -> None:
            kafka.kill()
            kafka.start()

        for _turn in range(ROUNDS or 1):
            running = scene.start()
            try:
                scene.run_to_a_random_moment(running)
            finally:
                running.kill()
            scene.send(BATCHES * LIMIT)
            scene.finish(kill_broker)
        check_exactly_once(scene)


def check_exactly_once(scene: Scene) -> None:
    assert Counter(row["id"] for row in values(scene, "out")) == Counter(scene.good)
    assert Counter(row["id"] for row in values(scene, "odd")) == Counter(n for n in scene.good if n % 2)
    assert len(committed_records(scene.servers, scene.topic("dead"))) == scene.sent - len(scene.good)
    totals = Counter((row["pump"], row["events"]) for row in values(scene, "totals"))
    assert set(totals.values()) == {1}  # a batch that was written twice would have its counts twice
    reached = {pump: max(events for each, events in totals if each == pump) for pump, _ in totals}
    assert sum(reached.values()) == len(scene.good)
