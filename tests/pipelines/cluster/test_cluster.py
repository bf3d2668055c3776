"""A pipeline on a real Spark cluster: missing modules are sent to workers, and killing a worker loses no record."""

from __future__ import annotations

import json
import sys
import uuid
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
import sqlalchemy as sa
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]  # not in __all__

from odradek.pipelines.definition.vocabulary import Delivery
from odradek.pipelines.spark.writing.databases import reading
from tests.pipelines.cluster.standalone import StandaloneCluster
from tests.pipelines.committed import committed_records
from tests.pipelines.leashed import Leashed

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from odradek.testing import RunningBroker
    from tests.jvm.shared_kafka import KafkaAddress

pytestmark = [pytest.mark.spark, pytest.mark.soak, pytest.mark.timeout(900)]

# Two cores of the cluster for each: one of either worker.
DEFINITION = """
pipeline: {name}
bootstrap_servers: {servers}
delivery: {delivery}
checkpoints: checkpoints
warehouse: sqlite:///w.db
spark: {{spark.executor.memory: 512m, spark.cores.max: "2"}}
sources:
  readings: {{topic: "{name}-in", schema: "id BIGINT, pump BIGINT"}}
"""
REPORTED = """
steps:
  reported: {{from: readings, python: "rules:reported"}}
sinks:
  all: {{from: reported, topic: "{name}-out", key: id}}
views:
  totals: {{from: readings, by: [pump], aggregate: {{events: count(*), highest: max(id)}}}}
"""
COPIED = """
sinks:
  all: {{from: readings, topic: "{name}-out", key: id}}
"""
RULES = """
import beside
from pyspark.sql import functions as F

def reported(frame):
    return frame.withColumn("reported", F.udf(beside.tell, "string")("id"))
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
    """Topics of a broker, a definition with two modules next to it, and the pipeline as a process."""

    def __init__(self, folder: Path, servers: str, rest: str, delivery: Delivery) -> None:
        self.folder, self.servers, self.name = folder, servers, f"c{uuid.uuid4().hex[:8]}"
        folder.mkdir()
        text = (DEFINITION + rest).format(name=self.name, servers=servers, delivery=delivery)
        for name, content in {"pipeline.yml": text, "rules.py": RULES, "beside.py": BESIDE}.items():
            (folder / name).write_text(content)
        admin = AdminClient({"bootstrap.servers": servers})
        topics = [NewTopic(f"{self.name}-in", 2, 1), NewTopic(f"{self.name}-out", 2, 1)]
        for future in admin.create_topics(topics).values():
            future.result(60)
        self._producer = Producer({"bootstrap.servers": servers, "log_level": 0})
        self.sent = 0

    def send(self, count: int) -> None:
        for number in range(self.sent, self.sent + count):
            value = json.dumps({"id": number, "pump": number % PUMPS})
            self._producer.produce(f"{self.name}-in", value, partition=number % 2)
        assert self._producer.flush(60) == 0
        self.sent += count

    def run(self, master: str) -> Leashed:
        command = [sys.executable, "-m", "odradek", "pipeline", "run", str(self.folder / "pipeline.yml")]
        return Leashed([*command, "--master", master], self.folder / "run.out")

    def outputs(self) -> list[dict[str, Any]]:
        return [json.loads(each.value() or b"") for each in committed_records(self.servers, f"{self.name}-out")]

    def counts(self) -> Counter[int]:
        return Counter(record["id"] for record in self.outputs())

    def is_written(self) -> bool:
        return len(self.counts()) == self.sent

    def totals(self) -> list[tuple[int, int, int]]:
        if not (self.folder / "w.db").exists():
            return []
        with reading(f"sqlite:///{self.folder}/w.db") as connection:
            if not sa.inspect(connection).has_table("totals"):
                return []
            return [tuple(row) for row in connection.execute(sa.text("select pump, events, highest from totals"))]

    def is_counted(self) -> bool:
        return sum(events for _, events, _ in self.totals()) == self.sent


def lose_a_worker(cluster: StandaloneCluster, scenes: Sequence[Scene]) -> None:
    """Kills a worker while records arrive and the pipelines have executors on both workers."""
    running = [scene.run(cluster.master) for scene in scenes]

    def send() -> None:
        for scene in scenes:
            scene.send(ROWS)

    def await_all() -> None:
        for scene, process in zip(scenes, running, strict=True):
            process.until(scene.is_written, LOOK_S)

    try:
        send()
        await_all()
        running[0].until(lambda: all(cluster.executors_of(number) >= len(scenes) for number in (0, 1)))
        send()
        cluster.workers[0].kill()
        send()
        await_all()
        running[0].until(scenes[0].is_counted, LOOK_S)
    finally:
        for process in running:
            process.kill()


@pytest.mark.jvm
def test_a_worker_that_is_killed_loses_and_doubles_nothing(
    tmp_path: Path, odradek_session_broker: RunningBroker, apache_kafka: KafkaAddress
) -> None:
    """Two pipelines on one cluster: one at least once, with a user function on the workers, one exactly once."""
    reported = Scene(tmp_path / "reported", odradek_session_broker.bootstrap_servers, REPORTED, Delivery.AT_LEAST_ONCE)
    copied = Scene(tmp_path / "copied", apache_kafka.bootstrap_servers, COPIED, Delivery.EXACTLY_ONCE)
    with StandaloneCluster(tmp_path, workers=2, cores=2) as cluster:
        lose_a_worker(cluster, [reported, copied])
    assert set(reported.counts()) == set(range(reported.sent))
    assert all(row["reported"] == f"{row['id']} by odradek.zip" for row in reported.outputs())
    in_all = reported.sent // PUMPS
    assert sorted(reported.totals()) == [(pump, in_all, reported.sent - PUMPS + pump) for pump in range(PUMPS)]
    assert copied.counts() == Counter(range(copied.sent))
