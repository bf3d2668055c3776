"""Pipelines on Spark: from event to warning, throughput beside a job written by hand, the time to check a definition.

The rigs run as a user runs them: `odradek pipeline run` in a process of its own, a fleet at a steady rate, and a client
that reads the warnings. What a warning took counts from the moment the fleet's client took the record.
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
from bench.results import ODRADEK, Experiment, Run
from bench.transform import Transform
from bench.turns import Said, in_turns
from bench.workloads import (
    RIGS_MEASURED_S,
    RIGS_RECORDS_PER_S,
    RIGS_ROUNDS,
    RIGS_WARM_UP_S,
    TRANSFORM,
    TRANSFORM_ROUNDS,
    TRANSFORMED_RECORDS,
    VALIDATE,
)
from odradek.cli.pipeline.process import PipelineProcess
from odradek.pipelines.rigs.dashboard_records import read_warning
from odradek.pipelines.rigs.fleet import Fleet, FleetSettings
from odradek.pipelines.rigs.producer import RigProducer, producer_settings, sending

ROOT = Path(__file__).parent.parent
RIGS = ROOT / "examples" / "rigs"
DEFINITIONS = {"rigs-realtime": RIGS / "pipeline-realtime.yml", "rigs-standard": RIGS / "pipeline.yml"}
RIGS_PARTITIONS = 2
SMALLEST_WAIT_S = 0.1
FIRST_WARNING_S = 180.0


@dataclass(frozen=True, slots=True)
class Pipelines:
    kinds: Sequence[BrokerKind]
    directory: Path
    scale: float
    say: Said

    def measure(self, name: str, rounds: int) -> Experiment:
        if name == TRANSFORM:
            records = max(1000, int(TRANSFORMED_RECORDS * self.scale))
            return Transform(self.kinds, self.directory, records, self.say).measure(min(rounds, TRANSFORM_ROUNDS))
        if name == VALIDATE:
            ours = [kind for kind in self.kinds if kind.key == ODRADEK]
            return in_turns(name, rounds, ours, self.directory, validate, self.say)

        def rigs(kind: BrokerKind, directory: Path, experiment: Experiment) -> Run:
            return self._event_to_warning(name, kind, directory, experiment)

        return in_turns(name, min(rounds, RIGS_ROUNDS), self.kinds, self.directory, rigs, self.say)

    def _event_to_warning(self, name: str, kind: BrokerKind, directory: Path, experiment: Experiment) -> Run:
        warm_up_s, seconds = RIGS_WARM_UP_S * self.scale, max(5.0, RIGS_MEASURED_S * self.scale)
        if self.scale != 1:
            experiment.note(f"warmed up for {warm_up_s:.0f} s only.")
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
                sender = RigProducer(producer, "rigs", Fleet(FleetSettings()), RIGS_RECORDS_PER_S)
                with sending(sender, is_stopped):
                    latencies_s = warnings(broker, time.monotonic() + warm_up_s, seconds, is_stopped)
        pipeline.raise_failure()
        if sender.failure is not None:
            raise BrokerError(f"the fleet could not send: {sender.failure}")
        if not latencies_s:
            raise BrokerError(f"no warning came within {seconds:.0f} s; the pipeline said: {' / '.join(lines[-5:])}")
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
    """How long each took that arrived within these seconds, which begin with the first warning if that comes later."""
    consumer = Consumer({"bootstrap.servers": broker.address, "group.id": "bench", "fetch.wait.max.ms": 100})
    try:
        partitions = consumer.list_topics("warnings", 30).topics["warnings"].partitions
        consumer.assign([TopicPartition("warnings", index, 0) for index in partitions])
        found: list[float] = []
        has_come = False
        while time.monotonic() < begins_at + (seconds if has_come else FIRST_WARNING_S) and not is_stopped.is_set():
            message = consumer.poll(SMALLEST_WAIT_S)
            now_s = time.time()
            if message is None or message.error() is not None:
                continue
            if not has_come:
                has_come, begins_at = True, max(begins_at, time.monotonic())
            if time.monotonic() < begins_at:
                continue
            reported_s = read_warning(message.key(), message.value()).reported_s
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
