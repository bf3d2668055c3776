"""A real broker for a test: a process on a free port with its own directory, started in well under a second.

    from odradek.testing import broker

    with broker(num_partitions=3) as running:
        producer = Producer({"bootstrap.servers": running.bootstrap_servers})

`cluster(brokers=3)` is a cluster of several, with ZooKeeper (docs/testing-failover.md).

With pytest, the fixtures `odradek_broker`, `odradek_session_broker` and `odradek_cluster` exist without an import;
override the fixtures `odradek_broker_properties`, `odradek_session_broker_properties` and `odradek_cluster_properties`
to configure their brokers (odradek.testing.plugin).

Groups do not wait for further members before their first rebalance: `group.initial.rebalance.delay.ms` is 0 unless a
test sets it. Submodules are imported when they are used, because every pytest run of every user loads the plugin.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from odradek.local.running_broker import BrokerError, RunningBroker, broker
    from odradek.local.running_cluster import RunningCluster, cluster
    from odradek.local.zookeeper import RunningZooKeeper, zookeeper

__all__ = ["BrokerError", "RunningBroker", "RunningCluster", "RunningZooKeeper", "broker", "cluster", "zookeeper"]

_MODULES = {
    "running_broker": ("BrokerError", "RunningBroker", "broker"),
    "running_cluster": ("RunningCluster", "cluster"),
    "zookeeper": ("RunningZooKeeper", "zookeeper"),
}


def __getattr__(name: str) -> Any:
    for module, names in _MODULES.items():
        if name in names:
            import importlib  # noqa: PLC0415 - imported when used, see above

            return getattr(importlib.import_module(f"odradek.local.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
