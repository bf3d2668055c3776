"""A topic of JSON records into two topics: a declared pipeline beside a Structured Streaming job written by hand.

Both run in one warm Spark session over the same records until they have caught up, in turns, on each broker.
"""

import contextlib
import dataclasses
import json
import logging
import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from confluent_kafka import Producer

from bench.brokers import BrokerError, BrokerKind, RunningBroker, running
from bench.results import Experiment, Run
from bench.topics import create
from bench.turns import OnRun, turn_order
from bench.workloads import OTHERS, TRANSFORM

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SCHEMA = "id BIGINT, pump BIGINT, time STRING, pressure DOUBLE, temperature DOUBLE"
DEFINITION = """
pipeline: transform
sources: {{readings: {{topic: {source}, schema: "{schema}"}}}}
sinks:
  pressures: {{from: readings, topic: {pressures}, key: pump, value: [id, pump, time, pressure]}}
  temperatures: {{from: readings, topic: {temperatures}, key: pump, value: [id, pump, time, temperature]}}
"""
PARTITIONS = 2
SETTINGS = {"spark.sql.shuffle.partitions": "2"}


@dataclass(frozen=True, slots=True)
class Topics:
    source: str
    pressures: str
    temperatures: str


@dataclass(frozen=True, slots=True)
class Transform:
    kinds: Sequence[BrokerKind]
    directory: Path
    records: int
    on_run: OnRun

    def measure(self, rounds: range) -> Experiment:
        from odradek.pipelines.spark.sessions.session import start_session  # noqa: PLC0415 - Spark is needed only here

        title, metrics = OTHERS[TRANSFORM]
        experiment = Experiment(TRANSFORM, title, list(metrics))
        experiment.note(f"{self.records:,} records of about 100 B in each run.")
        logging.getLogger("py4j").setLevel(logging.ERROR)
        session = start_session("bench", SETTINGS, "local[*]")
        with contextlib.ExitStack() as stack:
            stack.callback(session.stop)
            brokers = [
                stack.enter_context(running(kind, self.directory / f"transform-{kind.key}")) for kind in self.kinds
            ]
            topics = {broker.key: self._filled(broker) for broker in brokers}
            for number in (0, *rounds):  # round 0 warms Spark up
                for broker in turn_order(brokers, number):
                    run = self._run(session, broker, topics[broker.key], is_declared_first=number % 2 == 0)
                    if number:
                        experiment.add(broker.key, run)
                    self.on_run(
                        title, broker.title, f"round {number}" if number else "warm-up", run if number else None
                    )
        return experiment

    def _run(self, session: "SparkSession", broker: RunningBroker, topics: Topics, *, is_declared_first: bool) -> Run:
        """The second job runs on a warmer Spark, so the order alternates."""
        rates = {}
        jobs = [("declared", declared), ("by hand", by_hand)]
        for name, start in jobs if is_declared_first else reversed(jobs):
            folder = broker.directory / "spark"
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            began_at = time.monotonic()
            start(session, broker.address, topics, folder)
            rates[name] = self.records / (time.monotonic() - began_at)
        return {
            "records_per_s": rates["declared"],
            "by_hand_records_per_s": rates["by hand"],
            "by_hand_share": rates["declared"] / rates["by hand"],
        }

    def _filled(self, broker: RunningBroker) -> Topics:
        topics = Topics(*(create(broker, PARTITIONS) for _ in range(3)))
        producer = Producer(
            {"bootstrap.servers": broker.address, "linger.ms": 20, "queue.buffering.max.messages": 500_000}
        )
        for number in range(self.records):
            value = {
                "id": number,
                "pump": number % 300,
                "time": "2026-01-01 00:00:00",
                "pressure": 107.5,
                "temperature": 30,
            }
            while True:
                try:
                    producer.produce(topics.source, json.dumps(value), partition=number % PARTITIONS)
                    break
                except BufferError:
                    producer.poll(0.1)
            if number % 1000 == 0:
                producer.poll(0)
        if producer.flush(60):
            raise BrokerError(f"{broker.title} did not acknowledge the records")
        return topics


def declared(session: "SparkSession", address: str, topics: Topics, folder: Path) -> None:
    from odradek.pipelines.planning.loading import load_yaml  # noqa: PLC0415
    from odradek.pipelines.planning.rules import plan_again  # noqa: PLC0415
    from odradek.pipelines.spark.engines.standard import StandardEngine  # noqa: PLC0415
    from odradek.pipelines.spark.writing.topics import prepare_topics  # noqa: PLC0415

    file = folder / "transform.yml"
    file.write_text(DEFINITION.format(schema=SCHEMA, **dataclasses.asdict(topics)))
    pipeline = dataclasses.replace(
        load_yaml(str(file), {}).require(), bootstrap_servers=address, checkpoints="checkpoints"
    )
    streams = StandardEngine(session, plan_again(pipeline), prepare_topics(pipeline)).start(until_caught_up=True)
    try:
        streams.wait(lambda: False)
    finally:
        streams.stop()


def by_hand(session: "SparkSession", address: str, topics: Topics, folder: Path) -> None:
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 - its usual name

    servers = {"kafka.bootstrap.servers": address}
    raw = (
        session.readStream.format("kafka")
        .options(subscribe=topics.source, startingOffsets="earliest", **servers)
        .load()
    )
    rows = raw.select(F.from_json(F.col("value").cast("string"), SCHEMA).alias("row")).select("row.*")

    def write(batch: "DataFrame", _number: int) -> None:
        batch.persist()
        for topic, name in ((topics.pressures, "pressure"), (topics.temperatures, "temperature")):
            value = F.to_json(F.struct("id", "pump", "time", name)).alias("value")
            records = batch.select(F.col("pump").cast("string").alias("key"), value)
            records.write.format("kafka").options(topic=topic, **servers).save()
        batch.unpersist()

    query = rows.writeStream.option("checkpointLocation", str(folder / "by-hand")).foreachBatch(write)
    query.trigger(availableNow=True).start().awaitTermination()
