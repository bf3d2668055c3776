"""The start of monitoring: nothing of it runs on if it fails."""

import asyncio
import socket
from types import SimpleNamespace
from typing import Any

import pytest

from odradek.configuration.broker_configs import BrokerConfig
from odradek.host.network import CannotListen
from odradek.metrics.broker_metrics import BrokerMetrics
from odradek.server.broker_monitoring import Monitoring
from odradek.server.monitoring.collection import MetricsCollection
from odradek.server.monitoring.readiness import Readiness
from tests.server.manual_clock import ManualClock


def monitoring(clock: ManualClock, metrics: BrokerMetrics, port: int) -> Monitoring:
    config = BrokerConfig.from_properties({"metrics.listener": f"127.0.0.1:{port}"})
    collection = MetricsCollection(metrics.registry)
    host: Any = SimpleNamespace(clock=clock)
    node: Any = SimpleNamespace(metrics=metrics, collection=collection, readiness=Readiness())
    return Monitoring(config, host, node, [])


def test_an_address_in_use_leaves_no_timer_behind() -> None:
    clock, metrics = ManualClock(), BrokerMetrics()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        with pytest.raises(CannotListen):
            asyncio.run(monitoring(clock, metrics, taken.getsockname()[1]).start())
        clock.advance(10_000)
    assert sum(metrics.event_loop_lag.value().counts) == 0


def test_the_lag_of_the_event_loop_is_measured_until_the_end() -> None:
    clock, metrics = ManualClock(), BrokerMetrics()

    async def run() -> None:
        started = monitoring(clock, metrics, 0)
        await started.start()
        clock.advance(1_000)
        started.close()
        clock.advance(10_000)

    asyncio.run(run())
    assert sum(metrics.event_loop_lag.value().counts) == 4
