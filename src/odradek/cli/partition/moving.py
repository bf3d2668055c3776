"""Waiting for moves between the log directories of a broker."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from odradek.admin.partitions.copies import failed_text, read_copies
from odradek.cli.framework.output import shows_progress
from odradek.conventions.failures import Failure
from odradek.conventions.figures import count_text, size_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from odradek.admin.broker_requests import BrokerRequests, KnownBroker
    from odradek.admin.partitions.copies import Copy

POLL_INTERVAL_S = 0.25
STALLED_S = 120.0  # without any progress; a throttled move progresses every eleven seconds at least


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
            click.echo(f"\r{line}\x1b[K", nl=False, err=True)
        time.sleep(POLL_INTERVAL_S)
    if shows_progress():
        click.echo("\r\x1b[K", nl=False, err=True)
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
