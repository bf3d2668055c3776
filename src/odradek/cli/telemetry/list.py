"""`odradek client list`: the clients that have asked brokers for subscriptions, or pushed metrics."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from odradek.admin.telemetry import id_text, read_instances
from odradek.cli.client.options import cluster_options
from odradek.cli.framework.commands import command
from odradek.cli.framework.output import note_missing, print_columns, print_json, say
from odradek.conventions.figures import age_text
from odradek.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from odradek.admin.cluster import Cluster
    from odradek.admin.telemetry import FoundInstance


@command("list", examples=[("clients, the last push first", "odradek client list")])
@cluster_options
def list_clients(cluster: Cluster, as_json: bool) -> None:
    """List the clients that push their metrics, or that have requested their subscription."""
    instances, missing = read_instances(cluster)
    note_missing(missing, "clients")
    found = sorted(instances, key=lambda each: -each.instance.last_push_ms)
    if as_json:
        for each in found:
            print_json(as_object(each))
        return
    if not found:
        say("no client has requested its subscription; clients do so some seconds after they have connected")
        return
    now_ms = int(time.time() * 1000)
    print_columns(
        ["INSTANCE", "CLIENT ID", "SOFTWARE", "ADDRESS", "BROKER", "PUSHES", "METRICS", "LAST PUSH"],
        [
            (
                id_text(each.instance.instance_id),
                each.instance.client_id or "",
                f"{each.instance.software_name} {each.instance.software_version}",
                f"{each.instance.host}:{each.instance.port}",
                each.broker_id,
                each.instance.pushes,
                each.instance.series,
                f"{age_text(max(now_ms - each.instance.last_push_ms, 0))} ago" if each.instance.pushes else "never",
            )
            for each in found
        ],
    )


def as_object(found: FoundInstance) -> dict[str, Any]:
    instance = found.instance
    return {
        "instance_id": id_text(instance.instance_id),
        "client_id": instance.client_id,
        "software_name": instance.software_name,
        "software_version": instance.software_version,
        "host": instance.host,
        "port": instance.port,
        "broker": found.broker_id,
        "subscription_id": instance.subscription_id,
        "push_interval_ms": instance.push_interval_ms,
        "requested_metrics": list(instance.requested_metrics),
        "last_error": ErrorCode(instance.last_error).name,
        "last_push_ms": instance.last_push_ms if instance.pushes else None,
        "pushes": instance.pushes,
        "received_bytes": instance.received_bytes,
        "metrics": instance.series,
        "dropped_metrics": instance.dropped_series,
    }
