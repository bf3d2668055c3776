"""Three brokers with replication 3: throughput and latency, a new replica that catches up, and idle partitions."""

import threading
import time
from collections.abc import Sequence
from pathlib import Path

from bench.brokers import BrokerError, BrokerKind
from bench.cluster_brokers import BROKERS, NODE_IDS, RunningCluster, running_cluster
from bench.processes import raise_open_files_limit
from bench.reassignment import is_reassigning, reassign
from bench.results import Experiment, Run
from bench.topics import create, create_many, create_on, fresh_topic
from bench.turns import Experiments, in_turns
from bench.workloads import (
    CAUGHT_UP_BYTES,
    CLUSTER_LATENCY_SECONDS,
    CLUSTER_WORKLOADS,
    IDLE_MEASURED_S,
    IDLE_PARTITIONS,
    IDLE_SETTLE_S,
    PARTITIONS,
    RATE_RECORDS_PER_S,
    ClusterWorkload,
)

CATCH_UP = "cluster-catch-up"
IDLE = "cluster-idle"
CATCH_UP_RECORD_BYTES = 1_000
CATCH_UP_DEADLINE_S = 300
POLL_S = 0.02
IDLE_TOPIC_PARTITIONS = 100
SPARE_FILES = 2_000


class Clusters(Experiments):
    def measure(self, name: str, rounds: range) -> Experiment:
        if name == CATCH_UP:
            measure = self._catch_up
        elif name == IDLE:
            measure = self._idle
        else:
            workload = CLUSTER_WORKLOADS[name]

            def measure(kind: BrokerKind, directory: Path, experiment: Experiment) -> Run:  # noqa: ARG001
                return self._load(kind, directory, workload)

        return in_turns(name, rounds, self.kinds, self.directory, measure, self.on_run)

    def _load(self, kind: BrokerKind, directory: Path, workload: ClusterWorkload) -> Run:
        """A run at full speed warms up; one more gives the rates, and one at a fixed rate the delays."""
        records = max(600, int(workload.records * self.scale))
        with running_cluster(kind, directory) as cluster:
            self._produce(cluster, workload, records)
            before_s = cluster.cpu_seconds()
            report = self._produce(cluster, workload, records)
            used_s = cluster.cpu_seconds() - before_s
            delays = self._delays(cluster, workload.record_bytes, workload.acks, CLUSTER_LATENCY_SECONDS)
        return {
            "records_per_s": float(report["records_per_s"]),
            "mb_per_s": float(report["mb_per_s"]),
            "broker_cpu_s_per_gb": used_s / (records * workload.record_bytes / 1e9),
            "p50_ms": delays["p50_ms"],
            "p99_ms": delays["p99_ms"],
        }

    def _produce(self, cluster: RunningCluster, workload: ClusterWorkload, records: int) -> Run:
        with fresh_topic(cluster.broker, replication=BROKERS) as topic:
            return self.generator.run(
                "produce", brokers=cluster.broker.address, topic=topic, records=records, size=workload.record_bytes,
                acks=workload.acks,
            )  # fmt: skip

    def _delays(self, cluster: RunningCluster, record_bytes: int, acks: str, seconds: float) -> Run:
        with fresh_topic(cluster.broker, replication=BROKERS) as topic:
            return self._run_latency(cluster, topic, record_bytes, acks, seconds)

    def _run_latency(self, cluster: RunningCluster, topic: str, record_bytes: int, acks: str, seconds: float) -> Run:
        report = self.generator.run(
            "latency", brokers=cluster.broker.address, topic=topic, size=record_bytes, acks=acks,
            rate=RATE_RECORDS_PER_S, seconds=max(1, round(seconds * self.scale)),
        )  # fmt: skip
        return {name: float(report[name]) for name in ("p50_ms", "p99_ms")}

    def _catch_up(self, kind: BrokerKind, directory: Path, experiment: Experiment) -> Run:
        """A third replica is added to every partition of a topic that two brokers have; the time ends when it is in
        sync everywhere. Meanwhile the delays of another topic are measured."""
        records = max(1_000, int(CAUGHT_UP_BYTES * self.scale) // CATCH_UP_RECORD_BYTES)
        with running_cluster(kind, directory) as cluster:
            first, second, new = NODE_IDS
            replicas = [[first, second] if index % 2 else [second, first] for index in range(PARTITIONS)]
            topic = create_on(cluster.broker, replicas)
            self.generator.run(
                "produce", brokers=cluster.broker.address, topic=topic, records=records, size=CATCH_UP_RECORD_BYTES,
                acks="all",
            )  # fmt: skip
            self._delays(cluster, 100, "all", CLUSTER_LATENCY_SECONDS)  # a warm-up
            quiet = self._delays(cluster, 100, "all", CLUSTER_LATENCY_SECONDS)
            took_s: list[float] = []
            copying = threading.Thread(
                target=_copy, args=(cluster, topic, [[*each, new] for each in replicas], took_s), daemon=True
            )
            copying.start()
            busy = self._run_latency(
                cluster, create(cluster.broker, replication=BROKERS), 100, "all", CLUSTER_LATENCY_SECONDS
            )
            copying.join(CATCH_UP_DEADLINE_S)
            if not took_s:
                raise BrokerError(f"{kind.title}: the new replica did not catch up in {CATCH_UP_DEADLINE_S} s")
            size_mb = records * CATCH_UP_RECORD_BYTES / 1e6
            experiment.note(f"{kind.title}: {size_mb:,.0f} MB were copied in {took_s[0]:.1f} s.")
        return {
            "caught_up_mb_per_s": size_mb / took_s[0],
            "quiet_p99_ms": quiet["p99_ms"],
            "catching_up_p99_ms": busy["p99_ms"],
            "catching_up_times": busy["p99_ms"] / quiet["p99_ms"],
        }

    def _idle(self, kind: BrokerKind, directory: Path, experiment: Experiment) -> Run:
        """The broker that takes most CPU time, while nothing is written or read."""
        topics = max(1, int(IDLE_PARTITIONS * self.scale) // IDLE_TOPIC_PARTITIONS)
        count = topics * IDLE_TOPIC_PARTITIONS
        if count != IDLE_PARTITIONS:
            experiment.note(f"measured with {count:,} partitions.")
        raise_open_files_limit(2 * BROKERS * count + SPARE_FILES)
        measured_s = max(2.0, IDLE_MEASURED_S * self.scale)
        with running_cluster(kind, directory) as cluster:
            create_many(cluster.broker, topics, IDLE_TOPIC_PARTITIONS, replication=BROKERS)
            time.sleep(max(1.0, IDLE_SETTLE_S * self.scale))
            before = cluster.broker_cpu_seconds()
            time.sleep(measured_s)
            used = [after - start for start, after in zip(before, cluster.broker_cpu_seconds(), strict=True)]
        return {"broker_cpu_percent": max(used) / measured_s * 100}


def _copy(cluster: RunningCluster, topic: str, replicas: Sequence[Sequence[int]], took_s: list[float]) -> None:
    port = int(cluster.broker.address.split(",")[0].rpartition(":")[2])
    began = time.monotonic()
    reassign(port, topic, replicas)
    while is_reassigning(port, topic):
        if time.monotonic() - began > CATCH_UP_DEADLINE_S:
            return
        time.sleep(POLL_S)
    took_s.append(time.monotonic() - began)
