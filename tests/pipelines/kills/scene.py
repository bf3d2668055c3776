"""A pipeline as a process that is killed and restarted while records arrive."""

from __future__ import annotations

import dataclasses
import json
import os
import random
import sys
import threading
import uuid
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]  # not in __all__

from odradek.pipelines.planning.loading import load_yaml
from odradek.pipelines.planning.rules import plan_again
from odradek.pipelines.spark.launching import Run, RunCallbacks
from odradek.pipelines.spark.resuming import resuming
from odradek.pipelines.spark.writing.databases import reading
from odradek.pipelines.spark.writing.topics import prepare_topics
from tests.pipelines.leashed import Leashed
from tests.pipelines.spark.stage import caught_up

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession

    from odradek.pipelines.definition.model import Pipeline

PARTITIONS = 3
PUMPS = 7
FEED_ROWS = 4
MOST_BATCHES = 4
LATEST_S = 0.4
FEED_S = 0.1


class Scene:
    """Topics on a broker, a definition, and the sent records: record `n` belongs to pump `n % PUMPS`."""

    def __init__(self, folder: Path, servers: str, definition: str, seed: int, *, replication_factor: int = 1) -> None:
        self.folder, self.servers = folder, servers
        self.prefix = f"k{uuid.uuid4().hex[:8]}"
        self.sent = 0
        self.random = random.Random(seed)
        self._runs = 0
        text = definition.replace("@", f"{self.prefix}-").replace("SERVERS", servers).replace("NAME", self.prefix)
        (folder / "pipeline.yml").write_text(text)
        admin = AdminClient({"bootstrap.servers": servers, "log_level": 0})
        for future in admin.create_topics([NewTopic(self.topic("in"), PARTITIONS, replication_factor)]).values():
            future.result(30)
        self._producer = Producer({"bootstrap.servers": servers, "log_level": 0, "enable.idempotence": True})

    def topic(self, name: str) -> str:
        return f"{self.prefix}-{name}"

    def send(self, count: int) -> None:
        """Sends records, of which every tenth fails to parse."""
        for number in range(self.sent, self.sent + count):
            row = {"id": number, "pump": number % PUMPS} if number % 10 else {"id": f"no {number}"}
            self._producer.produce(self.topic("in"), json.dumps(row), partition=number % PARTITIONS)
        assert self._producer.flush(60) == 0
        self.sent += count

    @property
    def good(self) -> list[int]:
        return [number for number in range(self.sent) if number % 10]

    def start(self, *more: str) -> Leashed:
        self._runs += 1
        command = [sys.executable, "-m", "odradek", "pipeline", "run", str(self.folder / "pipeline.yml")]
        return Leashed([*command, *more], self.folder / f"run-{self._runs}.out")

    def run_to_a_random_moment(self, running: Leashed) -> None:
        """Runs the pipeline while records arrive, for a few batches and a random time."""
        batches = batches_of(running) + self.random.randint(1, MOST_BATCHES)

        def is_reached() -> bool:
            self.send(FEED_ROWS)
            return batches_of(running) >= batches

        running.until(is_reached, FEED_S)
        self.send(FEED_ROWS)
        self.let_a_moment_pass()

    def run_on_or_end(self, running: Leashed) -> None:
        """Waits until the pipeline continues after the broker's restart, or has ended with an error."""
        batches = batches_of(running) + self.random.randint(1, MOST_BATCHES)

        def is_settled() -> bool:
            self.send(FEED_ROWS)
            return not running.is_running or batches_of(running) >= batches

        running.until(is_settled, FEED_S)
        self.let_a_moment_pass()

    def let_a_moment_pass(self) -> None:
        threading.Event().wait(self.random.uniform(0, LATEST_S))

    def finish(self, disturb: Callable[[], None]) -> None:
        """Until everything that was sent is through, by one that is started again where it fails; what disturbs it
        comes between the first batch and the last.
        """
        running = self.start("--until-caught-up", "--restart")
        try:
            running.until(lambda: batches_of(running))
            self.let_a_moment_pass()
            assert running.is_running, running.text
            batches = batches_of(running)
            disturb()
            assert running.wait(300) == 0, running.text
            assert batches_of(running) > batches, running.text
        finally:
            running.kill()

    def finish_here(self, spark: SparkSession) -> None:
        """Runs the pipeline until it has caught up, like the command, in the existing Spark session."""
        pipeline = self._pipeline()
        cluster = prepare_topics(pipeline)
        run = Run(pipeline, cluster, plan_again(pipeline))
        with resuming(run.plan, cluster, lambda _text: None) as starts:
            callbacks = RunCallbacks(lambda _text: None, lambda _report: None)
            caught_up(run.start(spark, starts, callbacks, until_caught_up=True))

    def recompute(self, spark: SparkSession, database: str) -> None:
        """Runs the same definition as a batch, into another database."""
        other = dataclasses.replace(self._pipeline(), warehouse=f"sqlite:///{self.folder}/{database}")
        Run(other, prepare_topics(other), plan_again(other)).once(spark, None)

    def _pipeline(self) -> Pipeline:
        found = load_yaml(str(self.folder / "pipeline.yml"), os.environ).pipeline
        assert found is not None
        return found

    def rows(self, database: str, query: str) -> list[tuple[Any, ...]]:
        with reading(f"sqlite:///{self.folder}/{database}") as connection:
            return [tuple(row) for row in connection.execute(sa.text(query))]


def batches_of(running: Leashed) -> int:
    """The number of batches that the process has reported."""
    return running.text.count(" batch ")


def written_files(folder: Path) -> list[Path]:
    """The files that Spark's file sink has committed; its log is compacted periodically."""
    logs = {int(path.stem): path for path in (folder / "_spark_metadata").iterdir() if path.name[0] != "."}
    compacted = [number for number, path in logs.items() if path.suffix == ".compact"]
    found = []
    for number in sorted(logs):
        if number >= max(compacted, default=0):
            lines = logs[number].read_text().splitlines()[1:]
            found += [folder / json.loads(line)["path"].rpartition("/")[2] for line in lines]
    return found
