"""`odradek cluster`: facts about a cluster as a whole."""

from __future__ import annotations

from odradek.cli.framework.commands import group


@group(
    lazy={
        "info": ("odradek.cli.cluster.status:info", "Count the brokers, topics, partitions and groups of a cluster."),
        "metrics": ("odradek.cli.cluster.metrics:metrics", "Show requests, bytes, lag and memory of brokers."),
        "unregister": ("odradek.cli.cluster.status:unregister", "Forget a broker that will not return."),
        "status": ("odradek.cli.cluster.status:status", "Show brokers, partitions that need attention, reassignments."),
    },
    examples=[
        ("brokers, controller, topics, partitions", "odradek cluster info"),
        ("partitions that need attention, redrawn every second", "odradek cluster status --watch"),
    ],
)
def cluster() -> None:
    """Show facts about a cluster."""
