"""Recovery after a kill, thousands of partitions, compaction, and latency beside other work of the broker.

Each is measured on newly started brokers.
"""

import os
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from confluent_kafka import KafkaException

from bench.brokers import BrokerKind, RunningBroker, kill, running, start, stop
from bench.cold_reads import CAN_EVICT, COLD_RECORD_BYTES, cold_reads
from bench.dirty_logs import DirtyLog, fill
from bench.footprint import SPARE_FILES, waiting
from bench.probes import Partition, write_everywhere
from bench.processes import (
    children_resident_mb,
    cpu_seconds,
    disk_bytes_read,
    is_alive,
    open_files,
    raise_open_files_limit,
    resident_mb,
)
from bench.results import Experiment, Run
from bench.topics import create, create_many, fresh_topic
from bench.turns import Experiments
from bench.workloads import (
    CALM_COMPACTED_BYTES,
    CALM_SECONDS,
    COLD_RECORDS,
    COMPACTED_BYTES,
    COMPACTED_KEYS,
    MANY_CONNECTIONS,
    MANY_PARTITIONS,
    MANY_TOPICS,
    RATE_RECORDS_PER_S,
    RECOVERED_PARTITIONS,
    RECOVERED_RECORDS,
)

STOP_MANY_DEADLINE_S = 300  # thousands of logs are flushed


class Scale(Experiments):
    def _recovery(self, kind: BrokerKind, directory: Path, experiment: Experiment) -> Run:
        """From the start of the process until each partition has acknowledged a record."""
        partitions = max(4, int(RECOVERED_PARTITIONS * self.scale))
        records = max(1000, int(RECOVERED_RECORDS * self.scale))
        if records != RECOVERED_RECORDS:
            experiment.note(f"measured with {partitions:,} partitions and {records:,} records.")
        with running(kind, directory, kill) as broker:
            topic = create(broker, partitions)
            self.generator.run("produce", brokers=broker.address, topic=topic, records=records, size=100)
            os.sync()  # so that write-back does not fall into the measured time
        every_partition = [(topic, index) for index in range(partitions)]
        recovery_s, used_s = _time_to_serve(kind, directory, broker.address, every_partition)
        return {"recovery_s": recovery_s, "broker_cpu_s": used_s}

    def _partitions(self, kind: BrokerKind, directory: Path, experiment: Experiment) -> Run:
        topics, connections = max(2, int(MANY_TOPICS * self.scale)), max(10, int(MANY_CONNECTIONS * self.scale))
        partitions = max(5, int(MANY_PARTITIONS * min(1.0, self.scale * 10)))
        if topics * partitions != MANY_TOPICS * MANY_PARTITIONS:
            experiment.note(f"measured with {topics * partitions:,} partitions, {connections:,} connections.")
        raise_open_files_limit(2 * topics * partitions + connections + SPARE_FILES)
        run: Run = {}
        with running(kind, directory, partial(stop, deadline_s=STOP_MANY_DEADLINE_S)) as broker:
            began = time.monotonic()
            try:
                names = create_many(broker, topics, partitions)
            except KafkaException as problem:
                if kind.is_odradek:
                    raise
                experiment.note(f"{kind.title} failed: {problem}.")
                return run
            run["created_s"] = time.monotonic() - began
            all_partitions = [(name, index) for name in names for index in range(partitions)]
            write_everywhere(broker.address, all_partitions, lambda: is_alive(broker.pid))
            with waiting(self.generator, "connections", brokers=broker.address, count=connections) as client:
                held = client(lambda: is_alive(broker.pid))["connections"]
                if held < connections:
                    experiment.note(f"{kind.title} held {held:,} connections of {connections:,}.")
                run["descriptors"] = open_files(broker.pid)
                run["memory_mb"] = resident_mb(broker.pid)
        first_partitions = [(name, 0) for name in names]
        run["restart_s"], run["restart_cpu_s"] = _time_to_serve(kind, directory, broker.address, first_partitions)
        return run

    def _compaction(self, kind: BrokerKind, directory: Path, experiment: Experiment) -> Run:
        """Rates are per CPU second, because the broker does nothing else."""
        size_bytes = int(COMPACTED_BYTES * self.scale)
        if size_bytes != COMPACTED_BYTES:
            experiment.note(f"measured with logs of {size_bytes / 1e6:,.1f} MB.")
        keys = max(10, int(COMPACTED_KEYS * self.scale))
        with running(kind, directory) as broker:
            self._compact(broker, size_bytes // 10, 100, keys)  # a warm-up: code is loaded, and compiled in Java
            small_mb_per_s, small_mb = self._compact(broker, size_bytes, 100, keys)
            large_mb_per_s, large_mb = self._compact(broker, size_bytes, 1_000, keys)
        run = {"compacted_100b_mb_per_s": small_mb_per_s, "compacted_1kb_mb_per_s": large_mb_per_s}
        if kind.is_odradek:
            run["cleaner_mb"] = max(small_mb, large_mb)
        else:
            experiment.note(f"{kind.title} compacts in a thread of its one process.")
        return run

    def _compact(self, broker: RunningBroker, size_bytes: int, record_bytes: int, keys: int) -> tuple[float, float]:
        """MB per CPU second, and the largest memory of the broker's children."""
        log = fill(self.generator, broker, size_bytes, record_bytes, keys)
        largest_mb = 0.0

        def sample() -> None:
            nonlocal largest_mb
            largest_mb = max(largest_mb, children_resident_mb(broker.pid))

        before_s = cpu_seconds(broker.pid)
        log.begin()
        log.wait(sample)
        return log.size_bytes / 1e6 / max(0.01, cpu_seconds(broker.pid) - before_s), largest_mb

    def _calm(self, kind: BrokerKind, directory: Path, experiment: Experiment) -> Run:
        with running(kind, directory) as broker:
            self._p99_ms(broker)  # a warm-up
            idle_ms = self._p99_ms(broker)
            log = fill(self.generator, broker, int(CALM_COMPACTED_BYTES * self.scale), 100, COMPACTED_KEYS)
            compacting_ms = self._p99_while_compacting(log, experiment)
            records = max(1000, int(COLD_RECORDS * self.scale))
            before_bytes = disk_bytes_read(broker.pid)
            with cold_reads(self.generator, broker, records) as passes:
                cold_ms = self._p99_ms(broker)
            size_mb = records * COLD_RECORD_BYTES / 1e6
            rate = len(passes) * size_mb / max(0.001, sum(passes))
            text = (
                f"{kind.title}: the cold topic of {size_mb:,.0f} MB was read {len(passes)} times, at {rate:,.0f} MB/s"
            )
            if not CAN_EVICT:
                experiment.note("this system cannot evict the pages of a file: the reads were served from memory.")
            if before_bytes is not None:
                text += f"; {((disk_bytes_read(broker.pid) or 0) - before_bytes) / 1e6:,.0f} MB were read from the disk"
            experiment.note(f"{text}.")
        return {
            "quiet_p99_ms": idle_ms,
            "compacting_p99_ms": compacting_ms,
            "compacting_times": compacting_ms / idle_ms,
            "cold_p99_ms": cold_ms,
            "cold_times": cold_ms / idle_ms,
        }

    def _p99_while_compacting(self, log: DirtyLog, experiment: Experiment) -> float:
        log.begin()
        p99_ms = self._p99_ms(log.broker)
        if log.is_clean():
            experiment.note(f"{log.broker.title} finished the compaction before the measurement ended.")
        log.wait()
        return p99_ms

    def _p99_ms(self, broker: RunningBroker) -> float:
        flags = {"rate": RATE_RECORDS_PER_S, "seconds": max(1, round(CALM_SECONDS * self.scale)), "size": 100}
        with fresh_topic(broker) as topic:
            return float(self.generator.run("latency", brokers=broker.address, topic=topic, **flags)["p99_ms"])


def _time_to_serve(
    kind: BrokerKind, directory: Path, address: str, partitions: Sequence[Partition]
) -> tuple[float, float]:
    """Seconds from the start of the process until each partition has acknowledged a record, and its CPU seconds."""
    began = time.monotonic()
    process = start(kind, directory, int(address.rpartition(":")[2]))
    try:
        write_everywhere(address, partitions, lambda: process.poll() is None)
        return time.monotonic() - began, cpu_seconds(process.pid)
    finally:
        stop(process, STOP_MANY_DEADLINE_S)
