"""A real broker for a test: a process on a free port with its own directory, started in well under a second.

    from odradek.testing import broker

    with broker(num_partitions=3) as running:
        producer = Producer({"bootstrap.servers": running.bootstrap_servers})

With pytest, the fixtures `odradek_broker` and `odradek_session_broker` exist without an import; override the fixtures
`odradek_broker_properties` and `odradek_session_broker_properties` to configure their brokers (odradek.testing.plugin).

Groups do not wait for further members before their first rebalance: `group.initial.rebalance.delay.ms` is 0 unless a
test sets it. Submodules are imported when they are used, because every pytest run of every user loads the plugin.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from odradek.testing.running_broker import BrokerError, RunningBroker, broker
    from odradek.testing.running_zookeeper import RunningZooKeeper, zookeeper

__all__ = ["BrokerError", "RunningBroker", "RunningZooKeeper", "broker", "zookeeper"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from odradek.testing import running_broker, running_zookeeper  # noqa: PLC0415 - imported when used, see above

    return getattr(running_zookeeper if hasattr(running_zookeeper, name) else running_broker, name)
