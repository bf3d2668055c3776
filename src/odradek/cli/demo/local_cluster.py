"""The cluster that `odradek demo --brokers N` and `odradek up --brokers N` start on this machine."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Self

import click

from odradek.cli.demo.local_broker import check_port
from odradek.conventions.failures import Failure, without_prefix
from odradek.local.running_cluster import replication_properties
from odradek.local.running_zookeeper import ZooKeeperDidNotStart
from odradek.testing import BrokerError, RunningBroker, RunningZooKeeper

if TYPE_CHECKING:
    from collections.abc import Mapping

    from odradek.local.running_broker import Property

REPLICAS = 3
SESSION_TIMEOUT_MS = 3000  # the death of a controller is noticed after this time
MOST_BROKERS = 9  # each has a key of the demo

brokers_option = click.option(
    "--brokers",
    type=click.IntRange(1, MOST_BROKERS),
    default=1,
    show_default=True,
    metavar="N",
    help="Brokers on consecutive ports; more than one with a ZooKeeper, which needs Java.",
)


class LocalCluster:
    """ZooKeeper and brokers, numbered from 1, on consecutive ports; `port` 0 for free ones."""

    def __init__(self, count: int, port: int, data_dir: str | None = None) -> None:
        self._zookeeper = RunningZooKeeper(data_directory=None if data_dir is None else f"{data_dir}/zookeeper")
        self._port = port
        self._data_dir = data_dir
        self._count = count
        self.brokers: dict[int, RunningBroker] = {}

    @property
    def bootstrap_servers(self) -> str:
        return ",".join(broker.bootstrap_servers for broker in self.brokers.values())

    def start(self) -> Self:
        try:
            self._zookeeper.start()
        except ZooKeeperDidNotStart as problem:
            raise Failure(f"ZooKeeper did not start: {without_prefix(str(problem))}") from None
        replicas = min(self._count, REPLICAS)
        properties = {
            **replication_properties(replicas, in_sync=max(replicas - 1, 1)),
            "zookeeper.connect": self._zookeeper.connect,
            "zookeeper.session.timeout.ms": SESSION_TIMEOUT_MS,
        }
        self.brokers = {node_id: self._broker(node_id, properties) for node_id in range(1, self._count + 1)}
        with ThreadPoolExecutor(len(self.brokers)) as pool:
            for node_id, started in {each: pool.submit(self.brokers[each].start) for each in self.brokers}.items():
                try:
                    started.result()
                except BrokerError as error:
                    last_line = without_prefix(self.brokers[node_id].output.rpartition("\n")[2])
                    raise Failure(f"broker {node_id} did not start: {last_line or error}") from None
        return self

    def _broker(self, node_id: int, properties: Mapping[str, Property]) -> RunningBroker:
        return RunningBroker(
            {"node.id": node_id, **properties},
            port=self._port + node_id - 1 if self._port else 0,
            data_directory=None if self._data_dir is None else f"{self._data_dir}/broker-{node_id}",
        )

    def close(self) -> None:
        """Brokers first, all at once: there is no one left to hand over to."""
        try:
            if self.brokers:
                with ThreadPoolExecutor(len(self.brokers)) as pool:
                    list(pool.map(lambda broker: broker.close(), self.brokers.values()))
        finally:
            self._zookeeper.close()

    def __enter__(self) -> Self:
        try:
            return self.start()
        except BaseException:
            self.close()
            raise

    def __exit__(self, *_exception: object) -> None:
        self.close()


def check_ports(port: int, count: int, command: str) -> None:
    """Failure if something listens on one of the ports."""
    for number in range(count if port else 0):
        check_port(port + number, command)
