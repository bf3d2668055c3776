"""`odradek client`: the metrics that clients push to the brokers (KIP-714)."""

from __future__ import annotations

from odradek.cli.framework.commands import group


@group(
    "client",
    lazy={
        "list": ("odradek.cli.telemetry.list:list_clients", "List the clients that push their metrics."),
        "describe": ("odradek.cli.telemetry.describe:describe", "Show the latest metrics of a client."),
        "subscribe": ("odradek.cli.telemetry.subscriptions:subscribe", "Ask clients for metrics."),
        "unsubscribe": ("odradek.cli.telemetry.subscriptions:unsubscribe", "Ask for them no more."),
        "subscriptions": ("odradek.cli.telemetry.subscriptions:subscriptions", "List what clients are asked for."),
    },
    examples=[
        (
            "ask all clients for all metrics, every 10 seconds",
            "odradek client subscribe all --metrics '*' --interval 10s",
        ),
        ("which clients push", "odradek client list"),
        ("the latest values of one", "odradek client describe Wx6hXBUsRYuiVrYqnvfDEw"),
    ],
)
def client() -> None:
    """Show the metrics that clients push, and choose which they push.

    Clients with KIP-714 push: Java from 3.7, librdkafka from 2.5. `list` and `describe` need Odradek's brokers.
    """
