"""`odradek cluster`: facts about a cluster as a whole."""

from __future__ import annotations

from odradek.cli.framework.commands import group


@group(
    lazy={"info": ("odradek.cli.cluster.info:info", "Show the brokers of a cluster, and the state of its partitions.")},
    examples=[("brokers, controller, topics, partitions", "odradek cluster info")],
)
def cluster() -> None:
    """Show facts about a cluster."""
