"""`odradek partition`: where the replicas of partitions are, and which of them lead."""

from __future__ import annotations

from odradek.cli.framework.commands import group


@group(
    lazy={
        "reassign": ("odradek.cli.partition.reassign:reassign", "Move replicas to other brokers; shows a plan first."),
        "move": ("odradek.cli.partition.move:move", "Move replicas to another log directory of their broker."),
        "elect": ("odradek.cli.partition.elect:elect", "Elect leaders: the preferred ones, or any replica."),
    },
    examples=[
        ("move the replicas of a broker to the others", "odradek partition reassign --drain 3"),
        ("a third replica for a topic", "odradek partition reassign pump --replication-factor 3"),
        ("running reassignments", "odradek partition reassign --list"),
        ("give leadership back to the preferred leaders", "odradek partition elect"),
    ],
)
def partition() -> None:
    """Move replicas, and elect leaders."""
