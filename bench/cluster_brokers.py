"""Clusters to measure: three brokers on this machine. Odradek's have one ZooKeeper; Apache Kafka's are combined KRaft
nodes."""

import contextlib
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from bench.brokers import START_DEADLINE_S, BrokerError, BrokerKind, RunningBroker, free_port, start, stop
from bench.processes import cpu_seconds
from odradek.testing import zookeeper

if TYPE_CHECKING:
    import subprocess

BROKERS = 3
NODE_IDS = tuple(range(1, BROKERS + 1))
READY_PAUSE_S = 0.1


@dataclass(frozen=True, slots=True)
class RunningCluster:
    """`broker` has the addresses of all, and the directory that holds the data of all."""

    broker: RunningBroker
    pids: tuple[int, ...]
    coordination_pid: int | None
    """Of ZooKeeper; its CPU time is part of the cluster's."""

    def broker_cpu_seconds(self) -> list[float]:
        return [cpu_seconds(pid) for pid in self.pids]

    def cpu_seconds(self) -> float:
        others = 0.0 if self.coordination_pid is None else cpu_seconds(self.coordination_pid)
        return sum(self.broker_cpu_seconds()) + others


@contextlib.contextmanager
def running_cluster(kind: BrokerKind, directory: Path) -> Iterator[RunningCluster]:
    """Start three brokers in `directory`, and yield when all of them know each other."""
    directory.mkdir(parents=True)
    with contextlib.ExitStack() as resources:
        coordination_pid = None
        shared: dict[str, str] = {}
        if kind.is_odradek:
            server = resources.enter_context(zookeeper())
            coordination_pid = server.server_pid
            shared = {"zookeeper.connect": server.connect}
        else:
            controllers = {node_id: free_port() for node_id in NODE_IDS}
            voters = ",".join(f"{node_id}@127.0.0.1:{port}" for node_id, port in controllers.items())
            shared = {"controller.quorum.voters": voters}
        ports = {node_id: free_port() for node_id in NODE_IDS}
        processes = []
        for node_id, port in ports.items():
            of_broker = directory / str(node_id)
            of_broker.mkdir()
            properties = {**shared, **_properties(node_id)}
            if not kind.is_odradek:
                controller = f"CONTROLLER://127.0.0.1:{controllers[node_id]}"
                properties["listeners"] = f"PLAINTEXT://127.0.0.1:{port},{controller}"
            member = kind.member(properties)
            member.prepare(of_broker, port)
            process = start(member, of_broker, port)
            resources.callback(stop, process)
            processes.append(process)
        address = ",".join(f"127.0.0.1:{port}" for port in ports.values())
        _wait_until_ready(kind, processes, address)
        broker = RunningBroker(kind.key, kind.title, address, processes[0].pid, directory)
        yield RunningCluster(broker, tuple(process.pid for process in processes), coordination_pid)


def _properties(node_id: int) -> Mapping[str, str]:
    return {
        "node.id": str(node_id),
        "offsets.topic.replication.factor": str(BROKERS),
        "transaction.state.log.replication.factor": str(BROKERS),
        "transaction.state.log.min.isr": "2",
        "auto.leader.rebalance.enable": "false",
    }


def _wait_until_ready(kind: BrokerKind, processes: "Sequence[subprocess.Popen[bytes]]", address: str) -> None:
    deadline = time.monotonic() + START_DEADLINE_S
    while not all(knows_brokers(each, BROKERS) for each in address.split(",")):
        if any(process.poll() is not None for process in processes):
            raise BrokerError(f"{kind.title}: a broker of the cluster ended")
        if time.monotonic() > deadline:
            raise BrokerError(f"{kind.title}: the brokers do not know each other")
        time.sleep(READY_PAUSE_S)


def knows_brokers(address: str, count: int) -> bool:
    try:
        admin = AdminClient({"bootstrap.servers": address, "log_level": 0})
        return len(admin.list_topics(timeout=5).brokers) == count
    except KafkaException:
        return False
