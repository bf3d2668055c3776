"""Time to start, also with many offsets to replay, memory after a load, memory of idle connections, heartbeats of many
groups.

Each is measured on newly started brokers, so that memory left by an earlier workload does not hide its own.
"""

import contextlib
import select
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from bench.brokers import BrokerError, BrokerKind, RunningBroker, free_port, last_output, running, start, stop
from bench.generator import Generator, GeneratorError, read_line
from bench.processes import cpu_seconds, is_alive, raise_open_files_limit, resident_mb
from bench.results import Experiment, Run
from bench.topics import create, fresh_topic
from bench.turns import Experiments
from bench.workloads import (
    GROUPS,
    GROUPS_SECONDS,
    IDLE_CONNECTIONS,
    MEMORY_RECORDS,
    REPLAYED_GROUPS,
    REPLAYED_PARTITIONS,
    REPLAYED_RECORDS,
)

SPARE_FILES = 1_000  # descriptors of a broker and a generator besides the connections


class Footprint(Experiments):
    def _start(self, kind: BrokerKind, directory: Path, _experiment: Experiment) -> Run:
        """From the start of the process; the client is started first and waits for the port."""
        directory.mkdir(parents=True)
        port = free_port()
        kind.prepare(directory, port)
        with waiting(self.generator, "first", announces=True, brokers=f"127.0.0.1:{port}", topic="first") as client:
            spawned_ns = time.time_ns()
            process = start(kind, directory, port)
            try:
                report = client(lambda: process.poll() is None)
                used_s = cpu_seconds(process.pid)
            except BrokerError:
                text = last_output(directory)
                raise BrokerError(f"{kind.title} did not start; the end of its output:\n{text}") from None
            finally:
                stop(process)
        return {"start_s": (report["acknowledged_unix_ns"] - spawned_ns) / 1e9, "broker_cpu_s": used_s}

    def _memory(self, kind: BrokerKind, directory: Path, experiment: Experiment) -> Run:
        records = max(1000, int(MEMORY_RECORDS * self.scale))
        if records != MEMORY_RECORDS:
            experiment.note(f"measured after {records:,} records.")
        with running(kind, directory) as broker, fresh_topic(broker) as topic:
            before_mb = resident_mb(broker.pid)
            self.generator.run("produce", brokers=broker.address, topic=topic, records=records, size=100)
            return {"memory_before_mb": before_mb, "memory_mb": resident_mb(broker.pid)}

    def _connections(self, kind: BrokerKind, directory: Path, experiment: Experiment) -> Run:
        wanted = max(10, int(IDLE_CONNECTIONS * self.scale))
        limit = raise_open_files_limit(wanted + SPARE_FILES)
        count = max(1, min(wanted, limit - SPARE_FILES))
        if count < IDLE_CONNECTIONS:
            experiment.note(f"{count:,} connections were opened at most (the limit on open files is {limit:,}).")
        with running(kind, directory) as broker:
            self._warm_up(broker)
            before_mb = resident_mb(broker.pid)
            with waiting(self.generator, "connections", brokers=broker.address, count=count) as client:
                report = client(lambda: is_alive(broker.pid))
                held = report["connections"]
                if "stopped_by" in report:
                    experiment.note(f"{kind.title} held {held:,}, then: {report['stopped_by']}.")
                more_mb = resident_mb(broker.pid) - before_mb
        return {
            "connections": held,
            "connections_mb_more": more_mb,
            "kb_per_connection": more_mb * 1000 / max(1, held),
        }

    def _groups(self, kind: BrokerKind, directory: Path, experiment: Experiment) -> Run:
        groups = max(2, int(GROUPS * self.scale))
        seconds = max(2, int(GROUPS_SECONDS * self.scale))
        if groups != GROUPS:
            experiment.note(f"measured with {groups:,} groups.")
        with running(kind, directory) as broker:
            before_s = cpu_seconds(broker.pid)
            try:
                report = self.generator.run("groups", brokers=broker.address, groups=groups, seconds=seconds)
            except GeneratorError as problem:
                if kind.is_odradek:
                    raise
                experiment.note(f"{kind.title} failed: {problem}.")
                return {}
            used_s = cpu_seconds(broker.pid) - before_s
        kept = ("p50_ms", "p99_ms", "max_ms", "expulsions", "settle_s")
        return {"broker_cpu_s": used_s, **{name: float(report[name]) for name in kept}}

    def _replay(self, kind: BrokerKind, directory: Path, experiment: Experiment) -> Run:
        """From the start of the process until the committed offsets of every group were fetched."""
        groups = max(1, int(REPLAYED_GROUPS * self.scale))
        commits = groups * REPLAYED_RECORDS // (REPLAYED_GROUPS * REPLAYED_PARTITIONS)
        if groups != REPLAYED_GROUPS:
            experiment.note(f"measured with {commits * REPLAYED_PARTITIONS:,} offsets.")
        with running(kind, directory) as broker:
            topic = create(broker, REPLAYED_PARTITIONS)
            flags = {"topic": topic, "groups": groups, "partitions": REPLAYED_PARTITIONS, "records": commits - groups}
            self.generator.run("commits", brokers=broker.address, **flags)  # after one commit of each group
            address = broker.address
        port = int(address.rpartition(":")[2])
        with waiting(self.generator, "offsets", announces=True, brokers=address, groups=groups) as client:
            spawned_ns = time.time_ns()
            process = start(kind, directory, port)
            try:
                report = client(lambda: process.poll() is None)
                used_s = cpu_seconds(process.pid)
            finally:
                stop(process)
        if report["offsets"] != groups * REPLAYED_PARTITIONS:
            raise BrokerError(f"{kind.title} lost offsets: it returned {report['offsets']:,} after the restart")
        return {"replay_s": (report["fetched_unix_ns"] - spawned_ns) / 1e9, "broker_cpu_s": used_s}

    def _warm_up(self, broker: RunningBroker) -> None:
        """Memory that a broker allocates for its first clients must not count as memory of connections."""
        with fresh_topic(broker) as topic:
            flags = {"brokers": broker.address, "topic": topic, "records": 1000, "size": 100}
            self.generator.run("produce", **flags)
            self.generator.run("consume", **flags)


@contextlib.contextmanager
def waiting(
    generator: Generator, mode: str, *, announces: bool = False, **flags: object
) -> Iterator[Callable[[Callable[[], bool]], dict[str, Any]]]:
    """Start the generator. Yields a function that waits for its report while the broker is running."""
    process = generator.start(mode, **flags)
    with process:  # closes its pipes, and waits for it
        assert process.stdout is not None
        assert process.stderr is not None
        stdout, stderr = process.stdout, process.stderr
        if announces:
            stdout.readline()

        def report(is_broker_alive: Callable[[], bool]) -> dict[str, Any]:
            while not select.select([stdout], [], [], 0.5)[0]:
                if not is_broker_alive():
                    raise BrokerError("the broker ended before it could be measured")
            line = stdout.readline()
            return read_line(mode, [line] if line else [], 0 if line else 1, "" if line else stderr.read())

        try:
            yield report
        finally:
            process.terminate()
