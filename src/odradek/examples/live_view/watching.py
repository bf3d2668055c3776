"""Runs a live view: follows the topics, reads the views, shows the figures, and ends with a summary."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from odradek.examples.live_view.reading import TopicFollower
from odradek.examples.live_view.warehouse import WarehouseReader

if TYPE_CHECKING:
    import threading

    from confluent_kafka.admin import AdminClient

    from odradek.examples.live_view.model import LiveViewModel
    from odradek.examples.live_view.reading import RecordSource
    from odradek.examples.live_view.screens import LineScreen
    from odradek.examples.live_view.stages import Stages

POLL_S = 0.1


def watch(
    source: RecordSource,
    admin: AdminClient,
    warehouse: str | None,
    model: LiveViewModel,
    screen: LineScreen,
    is_stopped: threading.Event,
    seconds: float | None = None,
    stages: Stages | None = None,
) -> None:
    """Shows the pipeline until `is_stopped`, or for a number of seconds. The first output ends the last of `stages`."""
    follower, reader = TopicFollower(source, admin, model), WarehouseReader(warehouse, model)
    now = time.monotonic()
    ends_at = None if seconds is None else now + seconds
    shown_at = now
    screen.begin(model)
    try:
        while not is_stopped.is_set() and (ends_at is None or time.monotonic() < ends_at):
            follower.poll(POLL_S)
            reader.poll()
            if stages is not None and model.has_output:
                stages.advance(time.time())
            if time.monotonic() - shown_at >= screen.interval_s:
                screen.turn(model, stages)
                shown_at = time.monotonic()
        follower.finish()
    finally:
        reader.close()
        screen.end(model)
