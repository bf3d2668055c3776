"""Gauges and counters of a node that are read from their owners when samples are collected."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from odradek import __version__
from odradek.metrics.samples import Sample

if TYPE_CHECKING:
    from collections.abc import Iterable

    from odradek.handlers.context import Services
    from odradek.server.coordination import Coordination


class NodeSamples:
    def __init__(self, services: Services, coordination: Coordination) -> None:
        self._services = services
        self._coordination = coordination
        self._python = ".".join(map(str, sys.version_info[:3]))

    def samples(self) -> Iterable[Sample]:
        services, coordination = self._services, self._coordination
        image, node_id = services.image, services.config.node_id
        yield Sample("odradek_build_info", (__version__, self._python, str(node_id), image.cluster_id), 1)
        yield Sample("odradek_active_brokers", (), sum(each.is_active for each in image.brokers.values()))
        yield Sample("odradek_controller_active", (), int(coordination.is_controller))
        yield Sample("odradek_leader_elections_total", (), services.partitions.leadership_changes.count)
        yield Sample("odradek_fetch_sessions", (), len(services.fetch_sessions))
        if services.telemetry is not None:
            yield Sample("odradek_client_instances", (), services.telemetry.instance_count)
            for each in services.telemetry.aggregates():
                yield Sample("odradek_client_metric_clients", (each.name,), each.clients)
                yield Sample("odradek_client_metric_all_clients", (each.name,), each.total)
                yield Sample("odradek_client_metric_max", (each.name,), each.largest)
        for directory in services.partitions.directories:
            yield Sample("odradek_log_directory_failed", (directory.path,), int(directory.failure is not None))
        yield Sample("odradek_isolated", (), int(coordination.is_isolated))
        if coordination.has_zookeeper_connection is not None:
            yield Sample("odradek_zookeeper_connected", (), int(coordination.has_zookeeper_connection))
        for listener in services.config.listeners:
            failures = services.authentication_failures.counts[listener.name]
            yield Sample("odradek_authentication_failures_total", (listener.name,), failures)
        replication = coordination.replication
        if replication is not None:
            yield Sample("odradek_isr_shrinks_total", (), replication.counts.in_sync_shrinks)
            yield Sample("odradek_isr_expands_total", (), replication.counts.in_sync_expands)
            yield Sample("odradek_replication_bytes_in_total", (), replication.counts.bytes_in)
        else:
            for name in ("isr_shrinks", "isr_expands", "replication_bytes_in"):
                yield Sample(f"odradek_{name}_total", (), 0)
