"""The partitions that a command works on: those of named topics, single ones of a topic, or all."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from odradek.admin.partitions.plan import select_partitions
from odradek.cli.client.name_completion import complete_topics
from odradek.cli.framework.commands import OptionalArgument
from odradek.cli.framework.parameter_types import PARTITION, TOPIC_NAME

if TYPE_CHECKING:
    from collections.abc import Sequence

    from odradek.admin.cluster_state import ClusterState, PartitionState

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
