"""`odradek partition`: where the replicas of partitions are, and which of them lead; what its commands share."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from odradek.admin.partitions.plan import select_partitions
from odradek.cli.client.name_completion import complete_topics
from odradek.cli.framework.commands import OptionalArgument, group
from odradek.cli.framework.parameter_types import PARTITION, TOPIC_NAME

if TYPE_CHECKING:
    from collections.abc import Sequence

    from odradek.admin.cluster_state import ClusterState, PartitionState


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


topics_argument = click.argument(
    "names", metavar="TOPIC...", nargs=-1, cls=OptionalArgument, type=TOPIC_NAME, shell_complete=complete_topics
)
partition_option = click.option(
    "--partition",
    "-p",
    "indexes",
    metavar="N",
    type=PARTITION,
    multiple=True,
    help="Only this partition of the topic. Repeatable.",
)


def named_partitions(state: ClusterState, names: Sequence[str], indexes: Sequence[int]) -> list[PartitionState]:
    """As `select_partitions`, from the options of a command."""
    if indexes and len(names) != 1:
        raise click.UsageError("--partition needs exactly one TOPIC")
    return select_partitions(state, names, indexes)


def brokers_text(brokers: Sequence[int]) -> str:
    return ",".join(map(str, brokers)) or "-"
