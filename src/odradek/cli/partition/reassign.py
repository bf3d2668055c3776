"""`odradek partition reassign`: move replicas between brokers; show, await, verify and cancel running reassignments."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from odradek.admin import partitions as moving
from odradek.admin.broker_requests import BrokerRequests
from odradek.admin.cluster_state import ClusterState, PartitionState, read_state
from odradek.admin.errors import NotAuthorized
from odradek.admin.log_directories import Sizes, read_sizes
from odradek.admin.partitions import Move
from odradek.cli import partition as partition_options
from odradek.cli.client.options import cluster_options
from odradek.cli.framework import output
from odradek.cli.framework.commands import command
from odradek.cli.framework.options import confirm, flag, option, repeatable, yes_option
from odradek.cli.framework.parameter_types import PARTITION, REPLICATION_FACTOR, ArgumentType, NumberType
from odradek.conventions.failures import Failure
from odradek.conventions.figures import INT64_MAX, count_text, size_text

if TYPE_CHECKING:
    from odradek.admin.cluster import Cluster

POLL_INTERVAL_S = 0.25
STALE_S = 10.0  # a broker may show replicas from before the reassignment for a moment
NONE_RUNNING = "no reassignment is running"


def move_object(move: Move) -> dict[str, Any]:
    place = {"topic": move.partition.topic, "partition": move.partition.index}
    return {**place, **output.fields_of(move, "before after bytes_to_copy")}


def show_plan(moves: Sequence[Move]) -> None:
    rows = []
    for move in moves:
        size = "?" if move.bytes_to_copy is None else size_text(move.bytes_to_copy) if move.adding else "-"
        before, *others = map(output.joined, (move.before, move.after, move.adding, move.removing))
        rows.append((move.partition.name, before, "→", *others, size))
    output.print_columns(["PARTITION", "FROM", "", "TO", "COPY TO", "REMOVE FROM", "SIZE"], rows)
    copies = sum(len(move.adding) for move in moves)
    removed = sum(len(move.removing) for move in moves)
    leaders = sum(bool(move.before) and move.before[0] != move.after[0] for move in moves)
    known = [move.bytes_to_copy for move in moves if move.bytes_to_copy is not None]
    size = f" ({size_text(sum(known))}{' and more' if len(known) < len(moves) else ''})" if copies else ""
    parts = [
        count_text(len(moves), "partition"),
        f"{count_text(copies, 'replica')} to copy{size}",
        f"{count_text(removed, 'replica')} to remove",
        f"{count_text(leaders, 'preferred leader')} to change",
    ]
    output.say()
    output.say(", ".join(parts))


def progress_object(partition: PartitionState, sizes: Sizes) -> dict[str, Any]:
    copied, total = progress(partition, sizes) or (None, None)
    place = {"topic": partition.topic, "partition": partition.index}
    replicas = output.fields_of(partition, "replicas adding removing")
    return {**place, **replicas, "copied_bytes": copied, "total_bytes": total}


def progress(partition: PartitionState, sizes: Sizes) -> tuple[int, int] | None:
    """Bytes on the new replicas, and bytes that they shall have; None if it is not known."""
    whole = sizes.get((partition.leader, partition.topic, partition.index))
    if whole is None:
        return None
    copied = [sizes.get((broker, partition.topic, partition.index), 0) for broker in partition.adding]
    return sum(min(each, whole) for each in copied), whole * len(partition.adding)


def print_running(partitions: Sequence[PartitionState], sizes: Sizes) -> None:
    rows = []
    for each in partitions:
        known = progress(each, sizes)
        brokers = map(output.joined, (each.target, each.adding, each.removing))
        rows.append((each.name, *brokers, "?" if known is None else partition_options.copied_text(*known)))
    output.print_columns(["PARTITION", "TO", "ADDING", "REMOVING", "COPIED"], rows)


def list_running(
    requests: BrokerRequests, state: ClusterState, partitions: Sequence[PartitionState], *, as_json: bool
) -> None:
    running = [each for each in partitions if each.is_reassigned]
    sizes = read_sizes(requests, state, running)
    if as_json:
        for each in running:
            output.print_json(progress_object(each, sizes))
    elif running:
        print_running(running, sizes)
    else:
        output.say(NONE_RUNNING)


def verify(
    requests: BrokerRequests, state: ClusterState, partitions: Sequence[PartitionState],
    expected: Mapping[tuple[str, int], tuple[int, ...]], *, as_json: bool,
) -> None:  # fmt: skip
    """Failure unless all reassignments are done, those of the file included. Throttles are removed if they are."""
    chosen = [each for each in partitions if (each.topic, each.index) in expected] if expected else partitions
    running = [each for each in chosen if each.is_reassigned]
    different = [
        each
        for each in chosen
        if not each.is_reassigned and each.replicas != expected.get((each.topic, each.index), each.replicas)
    ]
    is_done = not running and not different
    any_running = any(each.is_reassigned for each in state.partitions)
    if is_done and not any_running:
        live = [broker.broker_id for broker in state.brokers.values() if not broker.is_fenced]
        moving.remove_throttle(requests, {each.topic for each in chosen}, live)
    if as_json:
        names = {"running": [each.name for each in running], "different": [each.name for each in different]}
        output.print_json({"done": is_done, **names})
    elif running:
        print_running(running, read_sizes(requests, state, running))
    if different and not as_json:
        rows = [
            (each.name, output.joined(each.replicas), output.joined(expected[each.topic, each.index]))
            for each in different
        ]
        output.print_columns(["PARTITION", "REPLICAS", "OF THE FILE"], rows)
    if not is_done:
        parts = [f"{count_text(len(running), 'partition')} being reassigned"] if running else []
        parts += [f"{count_text(len(different), 'partition')} with other replicas than the file"] if different else []
        raise Failure(f"not done: {', '.join(parts)}")
    if not as_json:
        rest = "; others are running, so throttles were kept" if any_running else "; throttles were removed"
        done = f"all {count_text(len(chosen), 'partition')} are done" if expected else NONE_RUNNING
        output.say(done + rest)


def cancel_running(
    requests: BrokerRequests, partitions: Sequence[PartitionState], *, is_confirmed: bool, as_json: bool
) -> None:
    running = [each for each in partitions if each.is_reassigned]
    if running:
        if not as_json:
            print_running(running, {})
        confirm(f"Cancel {count_text(len(running), 'reassignment')}?", is_confirmed, refusal="nothing was cancelled")
        moving.alter_reassignments(requests, {(each.topic, each.index): None for each in running})
    cancelled = f"cancelled {count_text(len(running), 'reassignment')}; `--verify` removes throttles"
    names, text = [each.name for each in running], cancelled if running else NONE_RUNNING
    output.print_result({"cancelled": names}, text, as_json=as_json)


def settle_throttle(requests: BrokerRequests, moves: Sequence[Move], *, has_begun: bool) -> str:
    """Remove the throttle of moves that have not begun, unless other reassignments need it. Says what became of it."""
    if not has_begun:
        try:
            state = read_state(requests)
            if state.knows_reassignments and not any(each.is_reassigned for each in state.partitions):
                moving.remove_throttle_of(requests, moves)
                return "the throttle was removed"
        except Failure:
            pass  # the message of the first failure matters more
    return "the throttle is set: `odradek partition reassign --verify` removes it when no reassignment is running"


def wait_for(requests: BrokerRequests, moves: Sequence[Move], *, removes_throttle: bool, as_json: bool) -> None:
    """Until the partitions have their new replicas."""
    wanted = {(move.partition.topic, move.partition.index): move.after for move in moves}
    began_at = seen_running_at = time.monotonic()
    while True:
        state = read_state(requests)
        present = [each for each in state.partitions if (each.topic, each.index) in wanted]
        running = [each for each in present if each.is_reassigned]
        different = [each for each in present if each.replicas != wanted[each.topic, each.index]]
        if running or not state.knows_reassignments:
            seen_running_at = time.monotonic()
        elif not different or time.monotonic() - seen_running_at > STALE_S:
            break
        if running and output.shows_progress():
            sizes = read_sizes(requests, state, running)
            known = [progress(each, sizes) or (0, 0) for each in running]
            copied, total = sum(each for each, _ in known), sum(each for _, each in known)
            partition_options.draw_progress(len(running), "partition", copied, total)
        time.sleep(POLL_INTERVAL_S)
    if output.shows_progress():
        output.redraw()
    if removes_throttle:
        moving.remove_throttle_of(requests, moves)
    if different:
        raise Failure(f"{different[0].name} has the replicas {output.joined(different[0].replicas)}: it was cancelled")
    seconds = time.monotonic() - began_at
    output.print_result({"done": True, "seconds": round(seconds, 3)}, f"done after {seconds:.1f} s", as_json=as_json)


def read_brokers(text: str) -> tuple[int, ...]:
    """Broker ids with commas."""
    found = tuple(PARTITION.convert(each.strip(), None, None) for each in text.split(","))
    if len(set(found)) != len(found):
        raise ValueError(f"'{text}' names a broker twice")
    return found


@command(
    ("spread a topic over all brokers, such as a new one", "odradek partition reassign pump"),
    ("three replicas, on these brokers", "odradek partition reassign pump --to 1,2,3 --replication-factor 3"),
    ("move everything off a broker, at 50 MB/s", "odradek partition reassign --drain 3 --throttle 50000000"),
    ("the plan of a file, as of kafka-reassign-partitions", "odradek partition reassign --file plan.json --yes"),
    ("what is running, and whether it is done", "odradek partition reassign --list"),
    ("", "odradek partition reassign --verify"),
)  # fmt: skip
@partition_options.topics_argument
@partition_options.partition_option
@option("--to to", "ID,ID,…", ArgumentType("brokers", read_brokers), "Brokers for the replicas. Default: all that run.")
@repeatable("--drain", "ID", PARTITION, "Broker to move replicas away from.")
@option("--replication-factor", "N", REPLICATION_FACTOR, "Replicas of each partition.")
@option("--file path", None, click.Path(exists=True, dir_okay=False), "Plan in the format of Kafka.")
@option("--throttle", "BYTES", NumberType(1, INT64_MAX), "Bytes per second that a broker may copy.")
@partition_options.dry_run_option
@flag("--wait waits", "Wait until the reassignment is done, then remove its throttle.")
@click.option("--list", "mode", flag_value="list", help="Show running reassignments.")
@click.option(
    "--verify", "mode", flag_value="verify",
    help="Check whether all are done (exit code 1 if not), and remove throttles if so.",
)  # fmt: skip
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
        advice = "`odradek cluster status` shows the brokers; wait for an election, and try again"
        raise Failure(f"no controller answers: {advice}")
    if mode is not None and (to or drain or replication_factor or throttle or dry_run or waits):
        raise click.UsageError(f"--{mode} takes topics, --partition or --file only")
    if mode is not None:
        expected = moving.read_plan_file(path) if mode == "verify" and path is not None else {}
        chosen = partition_options.named_partitions(state, names, indexes)
        if mode == "list":
            list_running(requests, state, chosen, as_json=as_json)
        elif mode == "verify":
            verify(requests, state, chosen, expected, as_json=as_json)
        else:
            cancel_running(requests, chosen, is_confirmed=yes, as_json=as_json)
        return
    if path is not None and (names or to or drain or replication_factor):
        raise click.UsageError("--file has the whole plan: leave out topics, --to, --drain and --replication-factor")
    if path is None and not names and not drain:
        raise click.UsageError("name topics, or give --drain or --file")
    if indexes and len(names) != 1 and not path:
        raise click.UsageError("--partition needs exactly one TOPIC")
    goal = moving.MoveGoal(names, indexes, to or (), drain, replication_factor)
    moves = moves_of_file(state, path) if path else moving.planned_moves(state, goal)
    sizes = read_sizes(requests, state, [move.partition for move in moves])
    moves = moving.with_sizes(moves, sizes)
    run_plan(requests, moves, throttle, dry_run=dry_run, waits=waits, yes=yes, as_json=as_json)


def moves_of_file(state: ClusterState, path: str) -> list[Move]:
    known = {(each.topic, each.index): each for each in state.partitions}
    moves = []
    for (topic, index), replicas in moving.read_plan_file(path).items():
        partition = known.get((topic, index))
        if partition is None:
            known_ones = "`odradek topic describe` shows those that exist"
            raise Failure(f"{path}: there is no partition {topic}-{index}; {known_ones}")
        if partition.target != replicas:
            moves.append(Move(partition, replicas))
    return moves


def submit(requests: BrokerRequests, moves: Sequence[Move], throttle: int | None) -> None:
    """Set the throttle and begin the moves. A Failure ends with what became of the throttle."""
    is_sent = False
    try:
        if throttle is not None:
            moving.set_throttle(requests, moves, throttle)
        is_sent = True
        targets = {(each.partition.topic, each.partition.index): each.after for each in moves}
        moving.alter_reassignments(requests, targets)
    except Failure as failure:
        if throttle is None:
            raise
        has_begun = is_sent and not isinstance(failure, moving.Refused | NotAuthorized)
        outcome = settle_throttle(requests, moves, has_begun=has_begun)
        raise type(failure)(f"{failure.message}; {outcome}") from None


def run_plan(
    requests: BrokerRequests, moves: Sequence[Move], throttle: int | None, *, dry_run: bool, waits: bool, yes: bool,
    as_json: bool,
) -> None:  # fmt: skip
    if not moves:
        text = "nothing to move: all replicas are where they should be"
        output.print_result({"partitions": [], "submitted": False}, text, as_json=as_json)
        return
    if not as_json:
        show_plan(moves)
    if not dry_run:
        confirm(f"Move {count_text(len(moves), 'partition')}?", yes, refusal="nothing was changed")
        submit(requests, moves, throttle)
    if as_json:
        output.print_json({"partitions": [move_object(move) for move in moves], "submitted": not dry_run})
    if dry_run:
        return
    if not as_json:
        output.say(f"the reassignment of {count_text(len(moves), 'partition')} has begun")
    if waits:
        wait_for(requests, moves, removes_throttle=throttle is not None, as_json=as_json)
    elif not as_json:
        others = "shows its progress, --verify whether it is done, --cancel stops it"
        output.note(f"`odradek partition reassign --list` {others}")
