"""`odradek transaction`: list, describe and abort transactions, and find those that hang."""

from __future__ import annotations

from odradek.cli.framework.commands import group


@group(
    "transaction",
    lazy={
        "list": ("odradek.cli.transaction.list:list_transactions", "List the transactional ids of the cluster."),
        "describe": ("odradek.cli.transaction.describe:describe", "Show the state and the partitions of transactions."),
        "abort": ("odradek.cli.transaction.abort:abort", "Abort a transaction that is open in a partition."),
        "find-hanging": (
            "odradek.cli.transaction.find_hanging:find_hanging",
            "Find open transactions that no coordinator knows.",
        ),
    },
    examples=[
        ("transactions that have been open for a minute", "odradek transaction list --open-for 1m"),
        ("coordinator, state, partitions", "odradek transaction describe billing-1"),
        ("transactions that hold back read_committed consumers for ever", "odradek transaction find-hanging"),
    ],
)
def transaction() -> None:
    """List, describe and abort transactions, and find those that hang."""
