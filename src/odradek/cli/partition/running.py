"""Reassignments that are running: shown, awaited, verified and cancelled."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from odradek.admin.cluster_state import read_state
from odradek.admin.partitions.requests import alter_reassignments
from odradek.admin.partitions.sizes import read_sizes
from odradek.admin.partitions.throttle import remove_throttle, remove_throttle_of
from odradek.cli.framework.confirmation import confirm
from odradek.cli.framework.output import print_columns, print_json, say, shows_progress
from odradek.cli.partition.plan_view import brokers_text, progress, progress_object, running_lines
from odradek.conventions.failures import Failure
from odradek.conventions.figures import count_text, size_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from odradek.admin.broker_requests import BrokerRequests
    from odradek.admin.cluster_state import ClusterState, PartitionState
    from odradek.admin.partitions.plan import Move

POLL_INTERVAL_S = 0.25
STALE_S = 10.0  # a broker may show replicas from before the reassignment for a moment
NONE_RUNNING = "no reassignment is running"


def list_running(
    requests: BrokerRequests, state: ClusterState, partitions: Sequence[PartitionState], *, as_json: bool
) -> None:
    running = [each for each in partitions if each.is_reassigned]
    sizes = read_sizes(requests, state, running)
    if as_json:
        for each in running:
            print_json(progress_object(each, sizes))
    else:
        say("\n".join(running_lines(running, sizes)) if running else NONE_RUNNING)


def verify(
    requests: BrokerRequests,
    state: ClusterState,
    partitions: Sequence[PartitionState],
    expected: Mapping[tuple[str, int], tuple[int, ...]],
    *,
    as_json: bool,
) -> None:
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
        remove_throttle(requests, {each.topic for each in chosen}, live)
    if as_json:
        print_json(
            {
                "done": is_done,
                "running": [f"{each.topic}-{each.index}" for each in running],
                "different": [f"{each.topic}-{each.index}" for each in different],
            }
        )
    elif running:
        say("\n".join(running_lines(running, read_sizes(requests, state, running))))
    if different and not as_json:
        rows = [
            (each.name, brokers_text(each.replicas), brokers_text(expected[each.topic, each.index]))
            for each in different
        ]
        print_columns(["PARTITION", "REPLICAS", "OF THE FILE"], rows)
    if not is_done:
        parts = [f"{count_text(len(running), 'partition')} being reassigned"] if running else []
        parts += [f"{count_text(len(different), 'partition')} with other replicas than the file"] if different else []
        raise Failure(f"not done: {', '.join(parts)}")
    if not as_json:
        rest = "; others are running, so throttles were kept" if any_running else "; throttles were removed"
        done = f"all {count_text(len(chosen), 'partition')} are done" if expected else NONE_RUNNING
        say(done + rest)


def cancel_running(
    requests: BrokerRequests, partitions: Sequence[PartitionState], *, is_confirmed: bool, as_json: bool
) -> None:
    running = [each for each in partitions if each.is_reassigned]
    if running:
        if not as_json:
            say("\n".join(running_lines(running, {})))
        confirm(f"Cancel {count_text(len(running), 'reassignment')}?", is_confirmed, refusal="nothing was cancelled")
        alter_reassignments(requests, {(each.topic, each.index): None for each in running})
    if as_json:
        print_json({"cancelled": [each.name for each in running]})
    elif running:
        say(f"cancelled {count_text(len(running), 'reassignment')}; `--verify` removes throttles")
    else:
        say(NONE_RUNNING)


def settle_throttle(requests: BrokerRequests, moves: Sequence[Move], *, has_begun: bool) -> str:
    """Remove the throttle of moves that have not begun, unless other reassignments need it. Says what became of it."""
    if not has_begun:
        try:
            state = read_state(requests)
            if state.knows_reassignments and not any(each.is_reassigned for each in state.partitions):
                remove_throttle_of(requests, moves)
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
        if running and shows_progress():
            show_progress(requests, state, running)
        time.sleep(POLL_INTERVAL_S)
    if shows_progress():
        click.echo("\r\x1b[K", nl=False, err=True)
    if removes_throttle:
        remove_throttle_of(requests, moves)
    if different:
        raise Failure(f"{different[0].name} has the replicas {brokers_text(different[0].replicas)}: it was cancelled")
    seconds = time.monotonic() - began_at
    if as_json:
        print_json({"done": True, "seconds": round(seconds, 3)})
    else:
        say(f"done after {seconds:.1f} s")


def show_progress(requests: BrokerRequests, state: ClusterState, running: Sequence[PartitionState]) -> None:
    sizes = read_sizes(requests, state, running)
    known = [progress(each, sizes) for each in running]
    copied = sum(each or 0 for each, _ in known)
    total = sum(each or 0 for _, each in known)
    line = f"{count_text(len(running), 'partition')} left, {size_text(copied)} of {size_text(total)} copied"
    click.echo(f"\r{line}\x1b[K", nl=False, err=True)
