"""A pipeline on a real Spark cluster: what workers lack is sent to them, and a worker that is killed loses nothing."""

from __future__ import annotations

import json
import sys
import uuid
from typing import TYPE_CHECKING

import pytest
import sqlalchemy as sa
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from odradek.pipelines.spark.sinks.warehouse import reading
from tests.pipelines.cluster.standalone import StandaloneCluster
from tests.pipelines.committed import committed_records
from tests.pipelines.leashed import Leashed

if TYPE_CHECKING:
    from pathlib import Path

    from odradek.testing import RunningBroker

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]

DEFINITION = """
pipeline: cluster
bootstrap_servers: {servers}
checkpoints: checkpoints
warehouse: sqlite:///w.db
spark: {{spark.executor.memory: 512m, spark.sql.shuffle.partitions: "2"}}
sources:
  readings: {{topic: "{prefix}-in", schema: "id BIGINT, pump BIGINT"}}
steps:
  told: {{from: readings, python: "rules:told"}}
sinks:
  all: {{from: told, topic: "{prefix}-out", key: id}}
views:
  totals: {{from: readings, by: [pump], aggregate: {{events: count(*), highest: max(id)}}}}
"""
RULES = """
import beside
from pyspark.sql import functions as F

def told(frame):
    return frame.withColumn("told", F.udf(beside.tell, "string")("id"))
"""
BESIDE = """
import odradek

def tell(id):
    return f"{id} by {odradek.__file__.split('/')[-3]}"
"""
PUMPS = 5
ROWS = 300
LOOK_S = 0.5


class Scene:
    """Topics of a broker, a definition with two modules beside it, and the pipeline as a process."""

    def __init__(self, folder: Path, servers: str) -> None:
        self.folder, self.servers, self.prefix = folder, servers, uuid.uuid4().hex[:8]
        text = DEFINITION.format(servers=servers, prefix=self.prefix)
        for name, content in {"pipeline.yml": text, "rules.py": RULES, "beside.py": BESIDE}.items():
            (folder / name).write_text(content)
        admin = AdminClient({"bootstrap.servers": servers})
        topics = [NewTopic(f"{self.prefix}-in", 2, 1), NewTopic(f"{self.prefix}-out", 2, 1)]
        for future in admin.create_topics(topics).values():
            future.result(20)
        self._producer = Producer({"bootstrap.servers": servers, "log_level": 0})
        self.sent = 0

    def send(self, count: int) -> None:
        for number in range(self.sent, self.sent + count):
            value = json.dumps({"id": number, "pump": number % PUMPS})
            self._producer.produce(f"{self.prefix}-in", value, partition=number % 2)
        assert self._producer.flush(20) == 0
        self.sent += count

    def run(self, master: str) -> Leashed:
        command = [sys.executable, "-m", "odradek", "pipeline", "run", str(self.folder / "pipeline.yml")]
        return Leashed([*command, "--master", master], self.folder / "run.out")

    def outputs(self) -> dict[int, str]:
        records = [json.loads(each.value() or b"") for each in committed_records(self.servers, f"{self.prefix}-out")]
        return {record["id"]: record["told"] for record in records}

    def totals(self) -> list[tuple[int, int, int]]:
        if not (self.folder / "w.db").exists():
            return []
        with reading(f"sqlite:///{self.folder}/w.db") as connection:
            if not sa.inspect(connection).has_table("totals"):
                return []
            return [tuple(row) for row in connection.execute(sa.text("select pump, events, highest from totals"))]

    def is_complete(self) -> bool:
        return len(self.outputs()) == self.sent and sum(events for _, events, _ in self.totals()) == self.sent


def test_a_worker_that_is_killed_loses_nothing(tmp_path: Path, odradek_session_broker: RunningBroker) -> None:
    scene = Scene(tmp_path, odradek_session_broker.bootstrap_servers)
    scene.send(ROWS)
    with StandaloneCluster(tmp_path, workers=2) as cluster:
        running = scene.run(cluster.master)
        try:
            running.until(scene.is_complete, LOOK_S)
            running.until(lambda: cluster.executors_of(0) and cluster.executors_of(1))
            scene.send(ROWS)
            cluster.workers[0].kill()
            scene.send(ROWS)
            running.until(scene.is_complete, LOOK_S)
        finally:
            running.kill()
    assert set(scene.outputs()) == set(range(scene.sent))
    assert all(told == f"{number} by odradek.zip" for number, told in scene.outputs().items())
    in_all = scene.sent // PUMPS
    assert sorted(scene.totals()) == [(pump, in_all, scene.sent - PUMPS + pump) for pump in range(PUMPS)]
