"""`odradek partition move`: move replicas of a broker to another of its log directories (AlterReplicaLogDirs)."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from odradek.admin.broker_requests import BrokerRequests
from odradek.admin.cluster_state import read_state
from odradek.admin.errors import error_text
from odradek.admin.partitions.copies import failed_text, read_copies
from odradek.cli.client.options import cluster_options
from odradek.cli.framework.commands import command
from odradek.cli.framework.confirmation import confirm, yes_option
from odradek.cli.framework.output import print_columns, print_json, redraw, say, shows_progress
from odradek.cli.partition import named_partitions, partition_option, topics_argument
from odradek.conventions.failures import Failure
from odradek.conventions.figures import count_text, size_text
from odradek.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopic,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from odradek.admin.broker_requests import KnownBroker
    from odradek.admin.cluster import Cluster
    from odradek.admin.partitions.copies import Copy

POLL_INTERVAL_S = 0.25
STALLED_S = 120.0  # without any progress; a throttled move progresses every eleven seconds at least


@command(
    examples=[
        (
            "all replicas of a topic to another disk",
            "odradek partition move pump --broker 1 --directory /disk2/odradek",
        ),
        ("one partition, and wait", "odradek partition move pump -p 0 --broker 1 --directory /disk2/odradek --wait"),
    ]
)
@topics_argument
@partition_option
@click.option("--broker", "broker_id", metavar="ID", type=int, required=True, help="The broker that has the replicas.")
@click.option("--directory", metavar="PATH", required=True, help="One of the log.dirs of the broker.")
@click.option("--wait", is_flag=True, help="Return when all replicas have been moved; show how far they are.")
@click.option(
    "--timeout", "timeout_s", metavar="SECONDS", type=click.FloatRange(min=0), help="With --wait: the longest wait."
)
@click.option("--dry-run", is_flag=True, help="Show the plan only.")
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
        show_plan(planned, cancelled, broker_id, directory)
    if (planned or cancelled) and not dry_run:
        confirm(question(planned, cancelled), yes, refusal="no replica was moved, and no move was cancelled")
        begin(requests, broker, [*planned, *cancelled], directory)
        if wait:
            wait_for(requests, broker, planned, directory, timeout_s)
    if as_json:
        moves = [move_row(each, each.path, directory) for each in planned]
        cancels = [move_row(each, directory, each.path) for each in cancelled]
        print_json({"replicas": moves, "cancelled": cancels, "moved": bool(wait and not dry_run)})
    elif planned and not dry_run:
        say("moved" if wait else "begun; the same command with --wait waits for the moves and shows how far they are")
    elif cancelled and not dry_run:
        say("cancelled")


def plan_moves(replicas: Sequence[Copy], directory: str) -> tuple[list[Copy], list[Copy]]:
    """The replicas that a request for the directory moves; and the incomplete copies elsewhere of replicas that are in
    it, whose moves the request cancels."""
    planned = [each for each in replicas if not each.is_future and each.path != directory]
    present = {each.key for each in replicas if not each.is_future and each.path == directory}
    cancelled = [each for each in replicas if each.is_future and each.key in present]
    return planned, cancelled


def question(planned: Sequence[Copy], cancelled: Sequence[Copy]) -> str:
    parts = [f"move {count_text(len(planned), 'replica')}"] if planned else []
    parts += [f"cancel {count_text(len(cancelled), 'move')}"] if cancelled else []
    return f"{' and '.join(parts).capitalize()}?"


def move_row(copy: Copy, source: str, target: str) -> dict[str, object]:
    return {"topic": copy.topic, "partition": copy.partition, "from": source, "to": target}


def show_plan(planned: Sequence[Copy], cancelled: Sequence[Copy], broker_id: int, directory: str) -> None:
    if not planned and not cancelled:
        say(f"nothing to move: all chosen replicas on broker {broker_id} are in {directory}")
        return
    if planned:
        rows = [(each.name, size_text(each.size_bytes), each.path, "→", directory) for each in planned]
        print_columns(["PARTITION", "SIZE", "DIRECTORY", "", "AFTER"], rows)
    for each in cancelled:
        say(f"the move of {each.name} to {each.path} is to be cancelled")
    say()


def begin(requests: BrokerRequests, broker: KnownBroker, planned: Iterable[Copy], directory: str) -> None:
    topics: dict[str, list[int]] = {}
    for each in planned:
        topics.setdefault(each.topic, []).append(each.partition)
    wanted = [AlterReplicaLogDirTopic(name=topic, partitions=indexes) for topic, indexes in topics.items()]
    request = AlterReplicaLogDirsRequest(dirs=[AlterReplicaLogDir(path=directory, topics=wanted)])
    answer = requests.ask(broker, request, AlterReplicaLogDirsResponse, 2)
    refused = [
        error_text(each.error_code, None, f"{topic.topic_name}-{each.partition_index}")
        for topic in answer.results
        for each in topic.partitions
        if each.error_code
    ]
    if refused:
        raise Failure("; ".join(refused))


def wait_for(
    requests: BrokerRequests, broker: KnownBroker, planned: Sequence[Copy], directory: str, timeout_s: float | None
) -> None:
    """Until the replicas are in the directory. A Failure names one whose move was given up or cancelled, makes no
    progress, or has not ended in time."""
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
        _check_time(left[0], began_at, progressed_at, timeout_s)
        if shows_progress():
            total_bytes = sum(each.size_bytes for each in left)
            line = (
                f"{count_text(len(left), 'replica')} left, {size_text(copied_bytes)} of {size_text(total_bytes)} copied"
            )
            redraw(line)
        time.sleep(POLL_INTERVAL_S)
    if shows_progress():
        redraw()
    if given_up is not None:
        raise Failure(
            f"{given_up.name} was not moved: the move was cancelled or failed; the log of the broker has the reason"
            f"{failed_text(broker, found)}"
        )


def _check_time(left: Copy, began_at: float, progressed_at: float, timeout_s: float | None) -> None:
    now = time.monotonic()
    if timeout_s is not None and now - began_at > timeout_s:
        raise Failure(f"{left.name} is not moved after {timeout_s:g} s; the move goes on")
    if now - progressed_at > STALLED_S:
        raise Failure(
            f"{left.name} is not moved, and nothing was copied for {STALLED_S:g} s; the move goes on: look at the log "
            "of the broker, and at replica.alter.log.dirs.io.max.bytes.per.second"
        )
