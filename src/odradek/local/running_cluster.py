"""A cluster on this machine: ZooKeeper and brokers as processes, which can be killed, stopped, suspended and cut off.

from odradek.testing import cluster

with cluster(brokers=3) as running:
    producer = Producer({"bootstrap.servers": running.bootstrap_servers, "enable.idempotence": True})
    running.kill(1)
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import tempfile
from collections.abc import Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Self

from odradek.local.cluster_network import ZOOKEEPER, ClusterNetwork
from odradek.local.ports import find_stable_port
from odradek.local.running_broker import Property, RunningBroker, named_properties
from odradek.local.zookeeper import RunningZooKeeper

BROKER_LISTENER = "BROKERS"


class RunningCluster:
    """Brokers have the ids 1, 2, 3, …, and topics have three replicas unless `properties` or the number of brokers say
    otherwise. With `has_network` the brokers reach each other and ZooKeeper through a process that can cut, delay and
    limit what passes; clients connect to the brokers directly. `port` is that of the first broker, and those of the
    others follow; 0 for free ones. Without `data_directory` a temporary directory is created, and removed by `close`.
    `is_fork`: as for RunningBroker.
    """

    def __init__(
        self, brokers: int = 3, properties: Mapping[str, Property] | None = None, *, has_network: bool = True,
        port: int = 0, data_directory: str | None = None, is_fork: bool = False,
    ) -> None:  # fmt: skip
        self._temporary = None if data_directory is not None else tempfile.mkdtemp(prefix="odradek-cluster-")
        self._directory = data_directory or self._temporary or ""
        replicas, in_sync = min(brokers, 3), min(brokers, 2)
        self._properties: dict[str, Property] = {
            "default.replication.factor": replicas,
            "offsets.topic.replication.factor": replicas,
            "transaction.state.log.replication.factor": replicas,
            "min.insync.replicas": in_sync,
            "transaction.state.log.min.isr": in_sync,
            **(properties or {}),
        }
        self._count = brokers
        self._port = port
        self._is_fork = is_fork
        self._network = ClusterNetwork() if has_network else None
        self.zookeeper = RunningZooKeeper(port=find_stable_port(), data_directory=self._path("zookeeper"))
        self.brokers: dict[int, RunningBroker] = {}

    @property
    def bootstrap_servers(self) -> str:
        """Value of `bootstrap.servers` for clients: all brokers, also those that do not run."""
        return ",".join(broker.bootstrap_servers for broker in self.brokers.values())

    def start(self, broker_id: int | None = None) -> Self:
        """Start the broker, or the whole cluster, and wait until it is ready. A broker keeps its port and its data."""
        if broker_id is not None:
            self._broker(broker_id).start()
            return self
        if not self.brokers:
            self.zookeeper.start()
            self.brokers = {node_id: self._member(node_id) for node_id in range(1, self._count + 1)}
        with ThreadPoolExecutor(len(self.brokers)) as starting:
            list(starting.map(RunningBroker.start, self.brokers.values()))
        return self

    def stop(self, broker_id: int) -> None:
        """Stop the broker with SIGTERM: it hands over what it leads."""
        self._broker(broker_id).stop()

    def kill(self, broker_id: int) -> None:
        """Kill the broker with SIGKILL, as a crash would."""
        self._broker(broker_id).kill()

    def suspend(self, broker_id: int) -> None:
        """The broker hangs, with its connections open, until `resume`."""
        os.kill(self._broker(broker_id).pid, signal.SIGSTOP)

    def resume(self, broker_id: int) -> None:
        os.kill(self._broker(broker_id).pid, signal.SIGCONT)

    def cut(
        self, broker_id: int, *, peers: Collection[int] | None = None, zookeeper: bool = True, sending: bool = True,
        receiving: bool = True,
    ) -> None:  # fmt: skip
        """Interrupt the traffic of a broker with `peers` (all other brokers by default) and with ZooKeeper, not with
        clients. With `sending=False` or `receiving=False` only one direction is cut. Connections stay open, and what
        was sent on them arrives after `heal`."""
        self._broker(broker_id)
        others = [str(each) for each in (self.brokers.keys() - {broker_id} if peers is None else peers)]
        others += [ZOOKEEPER] if zookeeper else []
        name = str(broker_id)
        links = [(name, other) for other in others] if sending else []
        links += [(other, name) for other in others] if receiving else []
        self._connected().cut(links)

    def heal(self) -> None:
        """End every cut."""
        self._connected().heal()

    def slow_down(self, *, delay_ms: float = 0.0, megabits_per_s: float = 0.0, loss: float = 0.0) -> None:
        """Delay, limit and lose traffic in each direction between two brokers, and between a broker and ZooKeeper.
        `loss` is the share of segments that arrive 200 ms late. Without arguments all limits end."""
        self._connected().shape(delay_ms=delay_ms, megabits_per_s=megabits_per_s, loss=loss)

    def close(self) -> None:
        """End all processes at once, without hand-overs. Remove the data of a temporary directory."""
        with contextlib.ExitStack() as closing:
            if self._temporary is not None:
                closing.callback(shutil.rmtree, self._temporary, ignore_errors=True)
            if self._network is not None:
                closing.callback(self._network.close)
            closing.callback(self.zookeeper.close)
            if self.brokers:
                with ThreadPoolExecutor(len(self.brokers)) as ending:
                    end = RunningBroker.stop if self._temporary is None else RunningBroker.kill
                    list(ending.map(end, self.brokers.values()))

    def __enter__(self) -> Self:
        try:
            return self.start()
        except BaseException:
            self.close()
            raise

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def _broker(self, broker_id: int) -> RunningBroker:
        if broker_id not in self.brokers:
            raise ValueError(f"there is no broker {broker_id}; the brokers are {', '.join(map(str, self.brokers))}")
        return self.brokers[broker_id]

    def _connected(self) -> ClusterNetwork:
        if self._network is None:
            raise RuntimeError("this cluster was made with has_network=False: its traffic cannot be interrupted")
        return self._network

    def _path(self, name: str) -> str:
        return os.path.join(self._directory, name)

    def _member(self, node_id: int) -> RunningBroker:
        client_port = self._port + node_id - 1 if self._port else find_stable_port()
        broker_port = find_stable_port()
        name, advertised_port, zookeeper_port = str(node_id), broker_port, self.zookeeper.port
        if self._network is not None:
            advertised_port = self._network.open(name, broker_port)
            zookeeper_port = self._network.open(ZOOKEEPER, zookeeper_port, source=name)
        properties: dict[str, Property] = {
            "node.id": node_id,
            "zookeeper.connect": f"127.0.0.1:{zookeeper_port}",
            # The listener of clients is the last: its port is the one that the ready line ends with.
            "listeners": _listeners(broker_port, client_port),
            "advertised.listeners": _listeners(advertised_port, client_port),
            "listener.security.protocol.map": f"{BROKER_LISTENER}:PLAINTEXT,PLAINTEXT:PLAINTEXT",
            "inter.broker.listener.name": BROKER_LISTENER,
            **self._properties,
        }
        directory = self._path(f"broker-{node_id}")
        return RunningBroker(properties, port=client_port, data_directory=directory, is_fork=self._is_fork)


def _listeners(broker_port: int, client_port: int) -> str:
    return f"{BROKER_LISTENER}://127.0.0.1:{broker_port},PLAINTEXT://127.0.0.1:{client_port}"


@contextlib.contextmanager
def cluster(
    brokers: int = 3, properties: Mapping[str, Property] | None = None, **more: Property
) -> Iterator[RunningCluster]:
    """A running cluster: `with cluster(brokers=3) as running:`. Properties are those of every broker, and have Kafka's
    names: in a mapping with dots, as keywords with underscores instead."""
    with RunningCluster(brokers, named_properties(properties, more), is_fork=True) as running:
        yield running
