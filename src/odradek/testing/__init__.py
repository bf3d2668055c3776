"""A real broker for a test: a process on a free port with a directory of its own, in well under a second.

    from odradek.testing import broker

    with broker(num_partitions=3) as running:
        producer = Producer({"bootstrap.servers": running.bootstrap_servers})

pytest users have the fixtures `odradek_broker` and `odradek_session_broker` (odradek.testing.plugin) without importing
anything. Nothing is imported here until it is used: every pytest run of every user loads the plugin.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from odradek.testing.running_broker import BrokerError, RunningBroker, broker

__all__ = ["BrokerError", "RunningBroker", "broker"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from odradek.testing import running_broker  # noqa: PLC0415 - lazy on purpose, see above

    return getattr(running_broker, name)
