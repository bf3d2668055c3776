"""`odradek config`: settings of topics, brokers and groups."""

from __future__ import annotations

from odradek.cli.framework.commands import group


@group(
    lazy={
        "describe": ("odradek.cli.config.describe:describe", "Show settings, and where their values come from."),
        "alter": ("odradek.cli.config.alter:alter", "Change settings while the cluster runs."),
    },
    examples=[
        ("what differs from the defaults on broker 0", "odradek config describe broker 0"),
        ("all brokers", "odradek config alter broker-default --set log.cleaner.backoff.ms=5000"),
        ("a topic", "odradek config alter topic pump --set retention.ms=1h"),
    ],
)
def config() -> None:
    """Show and change settings of topics, brokers and groups, as kafka-configs does."""
