"""The brokers that a suite runs on: one, or a cluster, whose brokers clients may reach through toxiproxy."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from odradek.local.ports import find_stable_port
from odradek.testing import RunningBroker, RunningCluster

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from odradek.local.running_broker import Property


@contextlib.contextmanager
def running(brokers: int, properties: Mapping[str, Property] | None = None) -> Iterator[str]:
    """The bootstrap servers of so many brokers."""
    if brokers == 1:
        port = find_stable_port()
        advertised: dict[str, Property] = {"node.id": 1, "advertised.listeners": f"PLAINTEXT://localhost:{port}"}
        with RunningBroker(advertised | dict(properties or {}), port=port) as broker:
            yield broker.bootstrap_servers
    else:
        with RunningCluster(brokers, properties, has_network=False) as cluster:
            yield cluster.bootstrap_servers


class ProxiedCluster(RunningCluster):
    """Each broker advertises the port of a proxy to clients, and its id as its rack."""

    def __init__(self, brokers: int, properties: Mapping[str, Property]) -> None:
        super().__init__(brokers, properties, has_network=False)
        self.ports: dict[int, tuple[int, int]] = {}
        """Of each broker: the port of its proxy, and the one on which it listens to clients."""

    def _member(self, node_id: int) -> RunningBroker:
        member = super()._member(node_id)
        proxy_port = find_stable_port()
        self.ports[node_id] = proxy_port, member.port
        advertised = str(member.properties["advertised.listeners"])
        member.properties |= {
            "advertised.listeners": advertised.replace(f":{member.port}", f":{proxy_port}"),
            "broker.rack": str(node_id),
        }
        return member
