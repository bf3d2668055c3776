"""Runs a live view: follows the topics, reads the views, shows the figures, and ends with a summary."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from odradek.examples.live_view.warehouse import WarehouseReader

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable

    from odradek.examples.live_view.model import LiveViewModel
    from odradek.examples.live_view.reading import TopicFollower
    from odradek.examples.live_view.screens import LineScreen
    from odradek.examples.live_view.stages import Stages

POLL_S = 0.1


def watch(
    follower: TopicFollower,
    warehouse: str | None,
    model: LiveViewModel,
    screen: LineScreen,
    is_stopped: threading.Event,
    seconds: float | None = None,
    stages: Stages | None = None,
    each_turn: Callable[[], None] = lambda: None,
) -> None:
    """Shows the pipeline until `is_stopped`, or for a number of seconds. The first output ends the last of `stages`."""
    reader, had_output = WarehouseReader(warehouse, model), False
    now = time.monotonic()
    ends_at = None if seconds is None else now + seconds
    shown_at = now
    screen.begin(model)
    try:
        while not is_stopped.is_set() and (ends_at is None or time.monotonic() < ends_at):
            follower.poll(POLL_S)
            reader.poll()
            each_turn()
            if model.has_output and not had_output:
                had_output = True
                if stages is not None:
                    stages.advance(time.time())
            if time.monotonic() - shown_at >= screen.interval_s:
                screen.turn(model, stages)
                shown_at = time.monotonic()
        follower.finish()
    finally:
        reader.close()
        screen.end(model)
