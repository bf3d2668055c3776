"""The partitions that a command works on: those of named topics, single ones of a topic, or all."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from odradek.cli.client.kafka_errors import NoSuchTopic
from odradek.cli.client.name_completion import complete_topics
from odradek.cli.framework.commands import OptionalArgument
from odradek.cli.framework.failure import Failure
from odradek.cli.framework.output import count_text
from odradek.cli.framework.parameter_types import PARTITION, TOPIC_NAME

if TYPE_CHECKING:
    from collections.abc import Sequence

    from odradek.cli.client.cluster_state import ClusterState, PartitionState

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


def select_partitions(state: ClusterState, names: Sequence[str], indexes: Sequence[int]) -> list[PartitionState]:
    """All partitions without names; a Failure names a topic or a partition that does not exist."""
    if indexes and len(names) != 1:
        raise click.UsageError("--partition needs exactly one TOPIC")
    if not names:
        return list(state.partitions)
    known = {partition.topic for partition in state.partitions}
    for name in names:
        if name not in known:
            raise NoSuchTopic(f"there is no topic {name}; `odradek topic list` shows those that exist", name)
    found = state.of_topics(names)
    missing = sorted(set(indexes) - {partition.index for partition in found})
    if missing:
        raise Failure(f"topic {names[0]} has no partition {missing[0]}; it has {count_text(len(found), 'partition')}")
    return [partition for partition in found if not indexes or partition.index in indexes]
