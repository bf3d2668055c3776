"""`odradek partition`: which replicas of partitions lead, and in which log directories they are."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from odradek.admin.broker_requests import BrokerRequests, KnownBroker
from odradek.admin.cluster_state import ClusterState, PartitionState, read_state
from odradek.admin.log_directories import Copy, failed_text, read_copies
from odradek.admin.partitions import elect_leaders, move_replicas, select_partitions
from odradek.cli.client.options import cluster_options, complete_topics
from odradek.cli.framework.commands import OptionalArgument, group
from odradek.cli.framework.options import confirm, flag, option, repeatable, yes_option
from odradek.cli.framework.output import joined, print_columns, print_json, print_result, redraw, say, shows_progress
from odradek.cli.framework.parameter_types import PARTITION, TOPIC_NAME
from odradek.conventions.failures import Failure
from odradek.conventions.figures import count_text, size_text
from odradek.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from odradek.admin.cluster import Cluster

ACCEPTED = frozenset({ErrorCode.NONE, ErrorCode.ELECTION_NOT_NEEDED})
POLL_INTERVAL_S = 0.25
STALLED_S = 120.0  # without any progress; a throttled move progresses every eleven seconds at least


@group(
    ("move the replicas of a broker to the others", "odradek partition reassign --drain 3"),
    ("a third replica for a topic", "odradek partition reassign pump --replication-factor 3"),
    ("running reassignments", "odradek partition reassign --list"),
    ("give leadership back to the preferred leaders", "odradek partition elect"),
    lazy={
        "reassign": ("odradek.cli.partition.reassign:reassign", "Move replicas to other brokers; shows a plan first.")
    },
)
def partition() -> None:
    """Move replicas, and elect leaders."""


topics_argument = click.argument(
    "names", metavar="TOPIC...", nargs=-1, cls=OptionalArgument, type=TOPIC_NAME, shell_complete=complete_topics
)
partition_option = repeatable("--partition -p indexes", "N", PARTITION, "Only this partition of the topic.")
dry_run_option = flag("--dry-run", "Show the plan only.")


def named_partitions(state: ClusterState, names: Sequence[str], indexes: Sequence[int]) -> list[PartitionState]:
    """As `select_partitions`, from the options of a command."""
    if indexes and len(names) != 1:
        raise click.UsageError("--partition needs exactly one TOPIC")
    return select_partitions(state, names, indexes)


def copied_text(copied_bytes: int, total_bytes: int) -> str:
    return f"{size_text(copied_bytes)} of {size_text(total_bytes)}"


def draw_progress(left: int, noun: str, copied_bytes: int, total_bytes: int) -> None:
    """On a terminal."""
    if shows_progress():
        redraw(f"{count_text(left, noun)} left, {copied_text(copied_bytes, total_bytes)} copied")


@partition.command(
    ("replicas of a topic to another disk", "odradek partition move pump --broker 1 --directory /disk2/odradek"),
    ("one partition, and wait", "odradek partition move pump -p 0 --broker 1 --directory /disk2/odradek --wait"),
    short_help="Move replicas to another log directory of their broker.",
)
@topics_argument
@partition_option
@option("--broker broker_id", "ID", int, "The broker that has the replicas.", required=True)
@option("--directory", "PATH", str, "One of the log.dirs of the broker.", required=True)
@flag("--wait", "Return when all replicas have been moved; show how far they are.")
@option("--timeout timeout_s", "SECONDS", click.FloatRange(min=0), "With --wait: the longest wait.")
@dry_run_option
@yes_option
@cluster_options
def move(
    names: tuple[str, ...], indexes: tuple[int, ...], broker_id: int, directory: str, wait: bool,
    timeout_s: float | None, dry_run: bool, yes: bool, cluster: Cluster, as_json: bool,
) -> None:  # fmt: skip
    """Move replicas of a broker to another of its log directories, after a plan was shown and confirmed.

    The broker copies them while it serves, at no more than replica.alter.log.dirs.io.max.bytes.per.second. A move to
    the directory that a replica is in cancels its move. Moves go on when the command ends, and after a restart of the
    broker; the same command with --wait waits for them.
    """
    if timeout_s is not None and not wait:
        raise Failure("--timeout is the longest wait of --wait: give both")
    requests = BrokerRequests(cluster)
    state = read_state(requests)
    broker = state.brokers.get(broker_id)
    if broker is None or broker.is_fenced:
        raise Failure(f"broker {broker_id} is not running; `odradek cluster status` shows those that are")
    chosen = {(each.topic, each.index) for each in named_partitions(state, names, indexes)}
    found = read_copies(requests, broker)
    if directory not in found.paths:
        raise Failure(f"broker {broker_id} has no log directory {directory}; it has {', '.join(found.paths)}")
    if directory in found.errors:
        raise Failure(f"no replica was moved{failed_text(broker, found)}; the log of the broker has the reason")
    replicas = [each for each in found.copies if each.key in chosen]
    if not replicas:
        raise Failure(f"broker {broker_id} has no replica of the chosen partitions{failed_text(broker, found)}")
    planned, cancelled = plan_moves(replicas, directory)
    if not as_json:
        show_moves(planned, cancelled, broker_id, directory)
    if (planned or cancelled) and not dry_run:
        confirm(question(planned, cancelled), yes, refusal="no replica was moved, and no move was cancelled")
        move_replicas(requests, broker, [*planned, *cancelled], directory)
        if wait:
            wait_for_moves(requests, broker, planned, directory, timeout_s)
    if as_json:
        moves = [move_object(each, each.path, directory) for each in planned]
        cancels = [move_object(each, directory, each.path) for each in cancelled]
        print_json({"replicas": moves, "cancelled": cancels, "moved": bool(wait and not dry_run)})
    elif planned and not dry_run:
        say("moved" if wait else "begun; the same command with --wait waits for the moves and shows how far they are")
    elif cancelled and not dry_run:
        say("cancelled")


def plan_moves(replicas: Sequence[Copy], directory: str) -> tuple[list[Copy], list[Copy]]:
    """The replicas that a request moves to the directory, and the copies of replicas in it, which it cancels."""
    planned = [each for each in replicas if not each.is_future and each.path != directory]
    present = {each.key for each in replicas if not each.is_future and each.path == directory}
    cancelled = [each for each in replicas if each.is_future and each.key in present]
    return planned, cancelled


def question(planned: Sequence[Copy], cancelled: Sequence[Copy]) -> str:
    parts = [f"move {count_text(len(planned), 'replica')}"] if planned else []
    parts += [f"cancel {count_text(len(cancelled), 'move')}"] if cancelled else []
    return f"{' and '.join(parts).capitalize()}?"


def move_object(copy: Copy, source: str, target: str) -> dict[str, object]:
    return {"topic": copy.topic, "partition": copy.partition, "from": source, "to": target}


def show_moves(planned: Sequence[Copy], cancelled: Sequence[Copy], broker_id: int, directory: str) -> None:
    if not planned and not cancelled:
        say(f"nothing to move: all chosen replicas on broker {broker_id} are in {directory}")
        return
    if planned:
        rows = [(each.name, size_text(each.size_bytes), each.path, "→", directory) for each in planned]
        print_columns(["PARTITION", "SIZE", "DIRECTORY", "", "AFTER"], rows)
    for each in cancelled:
        say(f"the move of {each.name} to {each.path} is to be cancelled")
    say()


def wait_for_moves(
    requests: BrokerRequests, broker: KnownBroker, planned: Sequence[Copy], directory: str, timeout_s: float | None
) -> None:
    """Until the replicas are in the directory. A Failure names one whose move has stopped, or takes too long."""
    began_at = progressed_at = time.monotonic()
    last_progress: tuple[int, int] | None = None
    while True:
        found = read_copies(requests, broker)
        moving = {each.key: each for each in found.copies if each.is_future and each.path == directory}
        done = {each.key for each in found.copies if not each.is_future and each.path == directory}
        left = [each for each in planned if each.key not in done]
        given_up = next((each for each in left if each.key not in moving), None)
        if given_up is not None or not left:
            break
        copied_bytes = sum(moving[each.key].size_bytes for each in left)
        if (len(left), copied_bytes) != last_progress:
            last_progress, progressed_at = (len(left), copied_bytes), time.monotonic()
        check_time(left[0], began_at, progressed_at, timeout_s)
        draw_progress(len(left), "replica", copied_bytes, sum(each.size_bytes for each in left))
        time.sleep(POLL_INTERVAL_S)
    if shows_progress():
        redraw()
    if given_up is not None:
        raise Failure(
            f"{given_up.name} was not moved: the move was cancelled or failed; the log of the broker has the reason"
            f"{failed_text(broker, found)}"
        )


def check_time(left: Copy, began_at: float, progressed_at: float, timeout_s: float | None) -> None:
    now = time.monotonic()
    if timeout_s is not None and now - began_at > timeout_s:
        raise Failure(f"{left.name} is not moved after {timeout_s:g} s; the move goes on")
    if now - progressed_at > STALLED_S:
        raise Failure(
            f"{left.name} is not moved, and nothing was copied for {STALLED_S:g} s; the move goes on: look at the log "
            "of the broker, and at replica.alter.log.dirs.io.max.bytes.per.second"
        )


@partition.command(
    ("after a restart: every partition back to its preferred leader", "odradek partition elect"),
    ("one topic, without a question", "odradek partition elect pump --yes"),
    (
        "accept lost records where no in-sync replica is left",
        "odradek partition elect pump --partition 0 --unclean",
    ),
)
@topics_argument
@partition_option
@flag("--unclean", "Elect a replica that is not in sync for partitions without a leader. Records may be lost.")
@dry_run_option
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
        show_election(chosen, is_unclean=unclean)
    if not dry_run:
        doubt = " that may lack records" if unclean else ""
        confirm(f"Elect {count_text(len(chosen), 'leader')}{doubt}?", yes, refusal="no leader was elected")
        run_election(requests, chosen, is_unclean=unclean, as_json=as_json)
    elif as_json:
        print_json({"partitions": [election_object(each) for each in chosen], "elected": 0})


def plan_election(
    state: ClusterState, partitions: Sequence[PartitionState], *, is_unclean: bool
) -> list[PartitionState]:
    """The partitions that an election may change."""
    if is_unclean:
        return [each for each in partitions if each.is_offline]
    running = {broker.broker_id for broker in state.brokers.values() if not broker.is_fenced}
    return [each for each in partitions if (each.has_other_leader or each.is_offline) and each.replicas[0] in running]


def show_election(partitions: Sequence[PartitionState], *, is_unclean: bool) -> None:
    rows = []
    for each in partitions:
        leader = "none" if each.is_offline else str(each.leader)
        after = "any replica" if is_unclean else str(each.replicas[0])
        rows.append((each.name, leader, "→", after, joined(each.replicas), joined(each.in_sync)))
    print_columns(["PARTITION", "LEADER", "", "AFTER", "REPLICAS", "IN SYNC"], rows)
    say()


def election_object(partition: PartitionState) -> dict[str, object]:
    before = None if partition.is_offline else partition.leader
    place = {"topic": partition.topic, "partition": partition.index}
    return {**place, "before": before, "preferred": partition.replicas[0]}


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
