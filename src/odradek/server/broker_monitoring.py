"""Composes what an operator watches of one broker: the metrics, readiness, event-loop lag, and the HTTP server."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.configuration.metrics_listener import address_text, metrics_address
from odradek.host.process_usage import read_process_usage
from odradek.metrics.samples import Sample
from odradek.server.monitoring.http_server import HttpServer
from odradek.server.monitoring.loop_lag import LoopLag
from odradek.server.monitoring.pages import MonitoringPages
from odradek.server.monitoring.readiness import JOINING, STOPPING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from odradek.configuration.broker_configs import BrokerConfig
    from odradek.host.host import Host
    from odradek.host.process_usage import ProcessUsage
    from odradek.server.listener import Listener
    from odradek.server.node import Node


class Monitoring:
    def __init__(self, config: BrokerConfig, host: Host, node: Node, listeners: Sequence[Listener]) -> None:
        """`listeners` may be added to after this."""
        self._config = config
        self._host = host
        self._node = node
        self._listeners = listeners
        self._usage: ProcessUsage | None = None
        self._ready_ms: float | None = None
        self._lag = LoopLag(host.clock, node.metrics.event_loop_lag)
        self._server: HttpServer | None = None
        node.collection.before(self._read_usage)
        node.metrics.registry.add(self._samples)
        self.url = ""
        """The address of /metrics; empty if it is not served."""

    async def start(self) -> None:
        """CannotListen when the address of `metrics.listener` cannot be bound."""
        address = metrics_address(self._config.metrics_listener)
        if address is not None:
            answers = MonitoringPages(self._node.collection, self._node.readiness)
            self._server = server = HttpServer(answers.answer, self._host.clock)
            await server.start(address.host, address.port)
            self.url = f"http://{address_text(address.host or '127.0.0.1', server.port)}/metrics"
        self._lag.start()

    def joining(self) -> None:
        """All logs are open."""
        self._node.readiness.phase = JOINING

    def serving(self) -> None:
        """The broker has registered, and accepts clients."""
        self._ready_ms = self._host.clock.monotonic_ms()
        self._node.readiness.phase = ""

    def stopping(self) -> None:
        self._node.readiness.phase = STOPPING

    def close(self) -> None:
        self._lag.stop()
        if self._server is not None:
            self._server.close()

    async def _read_usage(self) -> None:
        self._usage = await self._host.workers.run(read_process_usage)

    def _samples(self) -> Iterable[Sample]:
        yield Sample("odradek_ready", (), int(not self._node.readiness.reasons()))
        if self._ready_ms is not None:
            yield Sample("odradek_uptime_seconds", (), (self._host.clock.monotonic_ms() - self._ready_ms) / 1000)
        for listener in self._listeners:
            labels = (listener.name,)
            yield Sample("odradek_connections", labels, listener.open_count)
            yield Sample("odradek_throttled_connections", labels, listener.muted_count)
            yield Sample("odradek_connections_accepted_total", labels, listener.counts.accepted)
            for reason, count in listener.counts.closed.items():
                yield Sample("odradek_connections_closed_total", (listener.name, reason.value), count)
        budgets = {listener.receive_buffers.budget for listener in self._listeners}
        yield Sample("odradek_request_memory_bytes", (), sum(budget.used_bytes for budget in budgets))
        waiting = sum(budget.waiting_count for budget in budgets)
        yield Sample("odradek_connections_waiting_for_memory", (), waiting)
        if self._usage is not None:
            yield from _usage_samples(self._usage)


def _usage_samples(usage: ProcessUsage) -> Iterable[Sample]:
    yield Sample("process_resident_memory_bytes", (), usage.resident_bytes)
    yield Sample("process_cpu_seconds_total", (), usage.cpu_s)
    if usage.open_files is not None:
        yield Sample("process_open_fds", (), usage.open_files)
    yield Sample("process_max_fds", (), usage.largest_open_files)
    yield Sample("process_start_time_seconds", (), usage.started_s)
