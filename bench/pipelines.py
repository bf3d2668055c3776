"""Pipelines on Spark: event to warning, throughput beside a job written by hand, a join of streams, bytes fetched.

The rigs run as users run them: `odradek pipeline run` in its own process, a fleet at a steady rate, and a client that
reads the warnings. The time of a warning begins when the fleet's client accepts the record.
"""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from bench.brokers import BrokerError, BrokerKind, RunningBroker, running
from bench.fetched_bytes import measure_fetched_bytes
from bench.results import Experiment, Run
from bench.stream_join import measure_join
from bench.transform import Transform
from bench.turns import OnRun, in_turns
from bench.workloads import (
    JOIN,
    READ_RECORDS,
    READS,
    RIGS_MEASURED_S,
    RIGS_RECORDS_PER_S,
    RIGS_WARM_UP_S,
    TRANSFORM,
    TRANSFORMED_RECORDS,
    VALIDATE,
)
from odradek.cli.up import PipelineProcess
from odradek.examples.folders import find_example
from odradek.examples.live_view.records import SeenRecord
from odradek.examples.simulator.loading import load_simulation
from odradek.examples.simulator.population import Population
from odradek.examples.simulator.producer import RecordProducer, producer_settings, sending

RIGS = find_example("rigs")
DEFINITIONS = {"rigs-realtime": RIGS.folder / "pipeline-realtime.yml", "rigs-standard": RIGS.folder / "pipeline.yml"}
RIGS_PARTITIONS = 2
SMALLEST_WAIT_S = 0.1
FIRST_WARNING_S = 180.0


@dataclass(frozen=True, slots=True)
class Pipelines:
    kinds: Sequence[BrokerKind]
    directory: Path
    scale: float
    on_run: OnRun

    def measure(self, name: str, rounds: range) -> Experiment:
        if name == TRANSFORM:
            records = max(1000, int(TRANSFORMED_RECORDS * self.scale))
            return Transform(self.kinds, self.directory, records, self.on_run).measure(rounds)
        if name == VALIDATE:
            ours = [kind for kind in self.kinds if kind.is_odradek]
            return in_turns(name, rounds, ours, self.directory, validate, self.on_run)
        if name == READS:
            ours = [kind for kind in self.kinds if kind.is_odradek]
            records = max(1000, int(READ_RECORDS * self.scale))

            def reads(_kind: BrokerKind, directory: Path, _experiment: Experiment) -> Run:
                return measure_fetched_bytes(directory, records)

            return in_turns(name, rounds, ours, self.directory, reads, self.on_run)
        if name == JOIN:

            def join(kind: BrokerKind, directory: Path, experiment: Experiment) -> Run:
                return measure_join(kind, directory, experiment, self.scale)

            return in_turns(name, rounds, self.kinds, self.directory, join, self.on_run)

        def rigs(kind: BrokerKind, directory: Path, experiment: Experiment) -> Run:
            return self._event_to_warning(name, kind, directory, experiment)

        return in_turns(name, rounds, self.kinds, self.directory, rigs, self.on_run)

    def _event_to_warning(self, name: str, kind: BrokerKind, directory: Path, experiment: Experiment) -> Run:
        warm_up_s, seconds = RIGS_WARM_UP_S * self.scale, max(5.0, RIGS_MEASURED_S * self.scale)
        if self.scale != 1:
            experiment.note(f"warmed up for {warm_up_s:.0f} s.")
        is_stopped = threading.Event()
        lines: list[str] = []
        with running(kind, directory) as broker:
            create_topic(broker, "rigs")
            arguments = [str(DEFINITIONS[name]), "--bootstrap-server", broker.address]
            arguments += ["--checkpoints", str(directory / "checkpoints")]
            arguments += ["--warehouse", f"sqlite:///{directory / 'rigs.db'}"]
            with PipelineProcess(arguments, is_stopped, lines.append) as pipeline:
                pipeline.wait_until_running()
                producer = Producer({**producer_settings(RIGS_RECORDS_PER_S), "bootstrap.servers": broker.address})
                fleet = Population(load_simulation(RIGS.simulator, {}))
                sender = RecordProducer(producer, "rigs", fleet, RIGS_RECORDS_PER_S)
                with sending(sender, is_stopped):
                    latencies_s = warnings(broker, time.monotonic() + warm_up_s, seconds, is_stopped)
        pipeline.raise_failure()
        if sender.failure is not None:
            raise BrokerError(f"the fleet could not send: {sender.failure}")
        if not latencies_s:
            raise BrokerError(
                f"no warning arrived within {seconds:.0f} s; output of the pipeline: {' / '.join(lines[-5:])}"
            )
        latencies_s.sort()
        return {
            "p50_ms": latencies_s[len(latencies_s) // 2] * 1000,
            "p99_ms": latencies_s[int(len(latencies_s) * 0.99)] * 1000,
            "warnings": len(latencies_s),
        }


def create_topic(broker: RunningBroker, name: str) -> None:
    admin = AdminClient({"bootstrap.servers": broker.address})
    admin.create_topics([NewTopic(name, RIGS_PARTITIONS, 1)])[name].result(30)


def warnings(broker: RunningBroker, begins_at: float, seconds: float, is_stopped: threading.Event) -> list[float]:
    """Seconds from event to warning of each warning in the measured interval, which begins at `begins_at` or with the
    first warning, whichever is later."""
    consumer = Consumer({"bootstrap.servers": broker.address, "group.id": "bench", "fetch.wait.max.ms": 100})
    try:
        partitions = consumer.list_topics("warnings", 30).topics["warnings"].partitions
        consumer.assign([TopicPartition("warnings", index, 0) for index in partitions])
        found: list[float] = []
        has_begun = False
        while time.monotonic() < begins_at + (seconds if has_begun else FIRST_WARNING_S) and not is_stopped.is_set():
            message = consumer.poll(SMALLEST_WAIT_S)
            now_s = time.time()
            if message is None or message.error() is not None:
                continue
            if not has_begun:
                has_begun, begins_at = True, max(begins_at, time.monotonic())
            if time.monotonic() < begins_at:
                continue
            reported_s = SeenRecord("warnings", message.key(), message.value(), {}).time_s("reported_at")
            if reported_s is not None:
                found.append(now_s - reported_s)
        return found
    finally:
        consumer.close()


def validate(_kind: BrokerKind, _directory: Path, _experiment: Experiment) -> Run:
    command = [sys.executable, "-m", "odradek", "pipeline", "validate", str(DEFINITIONS["rigs-standard"])]
    began_at = time.monotonic()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=dict(os.environ))
    return {"validate_s": time.monotonic() - began_at}
