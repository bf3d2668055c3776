"""`odradek partition reassign`: move replicas between brokers; show, verify and cancel running reassignments."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from odradek.admin.broker_requests import BrokerRequests
from odradek.admin.cluster_state import read_state
from odradek.admin.errors import NotAuthorized
from odradek.admin.partitions.plan import Move, planned_moves
from odradek.admin.partitions.plan_file import read_plan_file
from odradek.admin.partitions.requests import Refused, alter_reassignments
from odradek.admin.partitions.sizes import read_sizes, with_sizes
from odradek.admin.partitions.throttle import set_throttle
from odradek.cli.client.options import cluster_options
from odradek.cli.framework.commands import command
from odradek.cli.framework.confirmation import confirm, yes_option
from odradek.cli.framework.output import note, print_json, say
from odradek.cli.framework.parameter_types import PARTITION, REPLICATION_FACTOR, NumberType
from odradek.cli.partition.plan_view import move_object, plan_lines
from odradek.cli.partition.running import cancel_running, list_running, settle_throttle, verify, wait_for
from odradek.cli.partition.selection import named_partitions, partition_option, topics_argument
from odradek.conventions.failures import Failure
from odradek.conventions.figures import INT64_MAX, count_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from odradek.admin.cluster import Cluster
    from odradek.admin.cluster_state import ClusterState

UNCHANGED = "nothing was changed"


class BrokerListType(click.ParamType):  # type: ignore[type-arg]  # generic in newer versions of click only
    """Broker ids with commas."""

    name = "brokers"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, ...]:
        if isinstance(value, tuple):
            return value
        found = tuple(PARTITION.convert(each.strip(), param, ctx) for each in str(value).split(","))
        if len(set(found)) != len(found):
            self.fail(f"'{value}' names a broker twice", param, ctx)
        return found


@command(
    examples=[
        ("spread a topic over all brokers, such as a new one", "odradek partition reassign pump"),
        ("three replicas, on these brokers", "odradek partition reassign pump --to 1,2,3 --replication-factor 3"),
        ("move everything off a broker, at 50 MB/s", "odradek partition reassign --drain 3 --throttle 50000000"),
        ("the plan of a file, as of kafka-reassign-partitions", "odradek partition reassign --file plan.json --yes"),
        ("what is running, and whether it is done", "odradek partition reassign --list"),
        ("", "odradek partition reassign --verify"),
    ]
)  # fmt: skip
@topics_argument
@partition_option
@click.option(
    "--to", "to", type=BrokerListType(), metavar="ID,ID,…", help="Brokers for the replicas. Default: all that run."
)
@click.option(
    "--drain", type=PARTITION, metavar="ID", multiple=True, help="Broker to move replicas away from. Repeatable."
)
@click.option("--replication-factor", type=REPLICATION_FACTOR, metavar="N", help="Replicas of each partition.")
@click.option("--file", "path", type=click.Path(exists=True, dir_okay=False), help="Plan in the format of Kafka.")
@click.option(
    "--throttle", type=NumberType(1, INT64_MAX), metavar="BYTES", help="Bytes per second that a broker may copy."
)
@click.option("--dry-run", is_flag=True, help="Show the plan only.")
@click.option("--wait", "waits", is_flag=True, help="Wait until the reassignment is done, then remove its throttle.")
@click.option("--list", "mode", flag_value="list", help="Show running reassignments.")
@click.option(
    "--verify",
    "mode",
    flag_value="verify",
    help="Check whether all are done (exit code 1 if not), and remove throttles if so.",
)
@click.option("--cancel", "mode", flag_value="cancel", help="Cancel running reassignments.")
@yes_option
@cluster_options
def reassign(
    names: tuple[str, ...], indexes: tuple[int, ...], to: tuple[int, ...] | None, drain: tuple[int, ...],
    replication_factor: int | None, path: str | None, throttle: int | None, dry_run: bool, waits: bool,
    mode: str | None, yes: bool, cluster: Cluster, as_json: bool,
) -> None:  # fmt: skip
    """Move replicas of partitions to other brokers, after a plan was shown and confirmed.

    Without --file, the partitions of the named topics are spread evenly over the brokers; replicas stay where they are
    as far as that allows, and new ones go to racks and machines without a replica first. --drain alone chooses all
    topics. Records are copied in the background: partitions can be written and read at the same time.
    """
    requests = BrokerRequests(cluster)
    state = read_state(requests)
    if not state.knows_reassignments:
        raise Failure(
            "no controller answers: `odradek cluster status` shows the brokers; wait for an election, and try again"
        )
    if mode is not None and (to or drain or replication_factor or throttle or dry_run or waits):
        raise click.UsageError(f"--{mode} takes topics, --partition or --file only")
    if mode == "list":
        list_running(requests, state, named_partitions(state, names, indexes), as_json=as_json)
        return
    if mode == "verify":
        expected = {} if path is None else read_plan_file(path)
        verify(requests, state, named_partitions(state, names, indexes), expected, as_json=as_json)
        return
    if mode == "cancel":
        cancel_running(requests, named_partitions(state, names, indexes), is_confirmed=yes, as_json=as_json)
        return
    if path is not None and (names or to or drain or replication_factor):
        raise click.UsageError("--file has the whole plan: leave out topics, --to, --drain and --replication-factor")
    if path is None and not names and not drain:
        raise click.UsageError("name topics, or give --drain or --file")
    if indexes and len(names) != 1 and not path:
        raise click.UsageError("--partition needs exactly one TOPIC")
    moves = moves_of_file(state, path) if path else planned_moves(state, names, indexes, to, drain, replication_factor)
    sizes = read_sizes(requests, state, [move.partition for move in moves])
    run_plan(requests, with_sizes(moves, sizes), throttle, dry_run=dry_run, waits=waits, yes=yes, as_json=as_json)


def moves_of_file(state: ClusterState, path: str) -> list[Move]:
    known = {(each.topic, each.index): each for each in state.partitions}
    moves = []
    for (topic, index), replicas in read_plan_file(path).items():
        partition = known.get((topic, index))
        if partition is None:
            raise Failure(
                f"{path}: there is no partition {topic}-{index}; `odradek topic describe` shows those that exist"
            )
        if partition.target != replicas:
            moves.append(Move(partition, replicas))
    return moves


def submit(requests: BrokerRequests, moves: Sequence[Move], throttle: int | None) -> None:
    """Set the throttle and begin the moves. A Failure ends with what became of the throttle."""
    is_sent = False
    try:
        if throttle is not None:
            set_throttle(requests, moves, throttle)
        is_sent = True
        alter_reassignments(requests, {(each.partition.topic, each.partition.index): each.after for each in moves})
    except Failure as failure:
        if throttle is None:
            raise
        has_begun = is_sent and not isinstance(failure, Refused | NotAuthorized)
        outcome = settle_throttle(requests, moves, has_begun=has_begun)
        raise type(failure)(f"{failure.message}; {outcome}") from None


def run_plan(
    requests: BrokerRequests,
    moves: Sequence[Move],
    throttle: int | None,
    *,
    dry_run: bool,
    waits: bool,
    yes: bool,
    as_json: bool,
) -> None:
    if not moves:
        if as_json:
            print_json({"partitions": [], "submitted": False})
        else:
            say("nothing to move: all replicas are where they should be")
        return
    if not as_json:
        say("\n".join(plan_lines(moves)))
    if not dry_run:
        confirm(f"Move {count_text(len(moves), 'partition')}?", yes, refusal=UNCHANGED)
        submit(requests, moves, throttle)
    if as_json:
        print_json({"partitions": [move_object(move) for move in moves], "submitted": not dry_run})
    elif not dry_run:
        say(f"the reassignment of {count_text(len(moves), 'partition')} has begun")
    if waits and not dry_run:
        wait_for(requests, moves, removes_throttle=throttle is not None, as_json=as_json)
    elif not dry_run and not as_json:
        note("`odradek partition reassign --list` shows its progress, --verify whether it is done, --cancel stops it")
