"""`odradek partition elect`: give leadership to the preferred leaders, or to any replica of a partition without one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from odradek.admin.broker_requests import BrokerRequests
from odradek.admin.cluster_state import read_state
from odradek.admin.partitions.requests import elect_leaders
from odradek.cli.client.options import cluster_options
from odradek.cli.framework.commands import command
from odradek.cli.framework.confirmation import confirm, yes_option
from odradek.cli.framework.output import print_columns, print_json, print_result, say
from odradek.cli.partition import brokers_text, named_partitions, partition_option, topics_argument
from odradek.conventions.failures import Failure
from odradek.conventions.figures import count_text
from odradek.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from odradek.admin.cluster import Cluster
    from odradek.admin.cluster_state import ClusterState, PartitionState

ACCEPTED = frozenset({ErrorCode.NONE, ErrorCode.ELECTION_NOT_NEEDED})


@command(
    examples=[
        ("after a restart: every partition back to its preferred leader", "odradek partition elect"),
        ("one topic, without a question", "odradek partition elect pump --yes"),
        (
            "accept the loss of records, where all in-sync replicas are gone",
            "odradek partition elect pump --partition 0 --unclean",
        ),
    ]
)
@topics_argument
@partition_option
@click.option(
    "--unclean",
    is_flag=True,
    help="Elect a replica that is not in sync for partitions without a leader. Records may be lost.",
)
@click.option("--dry-run", is_flag=True, help="Show the plan only.")
@yes_option
@cluster_options
def elect(
    names: tuple[str, ...], indexes: tuple[int, ...], unclean: bool, dry_run: bool, yes: bool, cluster: Cluster,
    as_json: bool,
) -> None:  # fmt: skip
    """Elect leaders, after a plan was shown and confirmed.

    The preferred leader is the first replica of a partition. With --unclean, partitions without a leader get one
    that is not in sync: records that only the missing replicas have are lost.
    """
    requests = BrokerRequests(cluster)
    state = read_state(requests)
    chosen = plan_election(state, named_partitions(state, names, indexes), is_unclean=unclean)
    if not chosen:
        text = "nothing to elect: " + ("all partitions have a leader" if unclean else "all preferred leaders lead")
        print_result({"partitions": [], "elected": 0}, text, as_json=as_json)
        return
    if not as_json:
        show_plan(chosen, is_unclean=unclean)
    if dry_run:
        if as_json:
            print_json({"partitions": [plan_object(each) for each in chosen], "elected": 0})
        return
    question = f"Elect {count_text(len(chosen), 'leader')}?"
    if unclean:
        question = f"Elect {count_text(len(chosen), 'leader')} that may lack records?"
    confirm(question, yes, refusal="no leader was elected")
    run_election(requests, chosen, is_unclean=unclean, as_json=as_json)


def plan_election(
    state: ClusterState, partitions: Sequence[PartitionState], *, is_unclean: bool
) -> list[PartitionState]:
    """The partitions that an election may change."""
    if is_unclean:
        return [each for each in partitions if each.is_offline]
    running = {broker.broker_id for broker in state.brokers.values() if not broker.is_fenced}
    return [each for each in partitions if (each.has_other_leader or each.is_offline) and each.replicas[0] in running]


def show_plan(partitions: Sequence[PartitionState], *, is_unclean: bool) -> None:
    rows = [
        (
            each.name,
            "none" if each.is_offline else str(each.leader),
            "→",
            "any replica" if is_unclean else str(each.replicas[0]),
            brokers_text(each.replicas),
            brokers_text(each.in_sync),
        )
        for each in partitions
    ]
    print_columns(["PARTITION", "LEADER", "", "AFTER", "REPLICAS", "IN SYNC"], rows)
    say()


def plan_object(partition: PartitionState) -> dict[str, object]:
    return {
        "topic": partition.topic,
        "partition": partition.index,
        "before": None if partition.is_offline else partition.leader,
        "preferred": partition.replicas[0],
    }


def run_election(
    requests: BrokerRequests, partitions: Sequence[PartitionState], *, is_unclean: bool, as_json: bool
) -> None:
    results = elect_leaders(requests, partitions, is_unclean=is_unclean)
    refused = [each for each in results if each.error not in ACCEPTED]
    elected = sum(each.error is ErrorCode.NONE for each in results)
    rows = [
        {"topic": each.topic, "partition": each.partition, "error": each.error.name if each in refused else None}
        for each in results
    ]
    print_result({"partitions": rows, "elected": elected}, f"elected {count_text(elected, 'leader')}", as_json=as_json)
    if refused:
        reasons = "; ".join(f"{each.topic}-{each.partition}: {each.reason} ({each.error.name})" for each in refused[:5])
        more = f"; and {len(refused) - 5} more" if len(refused) > 5 else ""
        raise Failure(f"{count_text(len(refused), 'election')} failed: {reasons}{more}")
