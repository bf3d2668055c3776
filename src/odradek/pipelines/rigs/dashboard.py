"""Runs the dashboard: follows the topics, shows the figures, and ends with a summary."""

from __future__ import annotations

import json
import sys
import time
from typing import TYPE_CHECKING

from odradek.pipelines.rigs.dashboard_reading import TopicFollower
from odradek.pipelines.rigs.dashboard_text import progress_facts, progress_line, summary_facts, summary_lines

if TYPE_CHECKING:
    import threading
    from typing import TextIO

    from confluent_kafka import Consumer
    from confluent_kafka.admin import AdminClient
    from rich.live import Live

    from odradek.pipelines.rigs.dashboard_model import DashboardModel

FRAME_EVERY_S = 0.25
LINE_EVERY_S = 1.0


class LineScreen:
    """Prints a line every second."""

    interval_s = LINE_EVERY_S

    def __init__(self, address: str, output: TextIO) -> None:
        self.address = address
        self.output = output

    def begin(self, model: DashboardModel) -> None:
        self.say(f"watching {', '.join(model.topics.all)} on {self.address}; Ctrl-C stops")

    def show(self, model: DashboardModel) -> None:
        self.say(progress_line(model, time.time()))

    def end(self, model: DashboardModel) -> None:
        for line in summary_lines(model, time.time()):
            self.say(line)

    def say(self, line: str) -> None:
        print(line, file=self.output, flush=True)


class JsonScreen(LineScreen):
    """Prints a JSON object every second, and a summary at the end."""

    def begin(self, model: DashboardModel) -> None:
        self.say(json.dumps({"kind": "ready", "bootstrap_servers": self.address, "topics": model.topics.all}))

    def show(self, model: DashboardModel) -> None:
        self.say(json.dumps({"kind": "progress", **progress_facts(model, time.time())}))

    def end(self, model: DashboardModel) -> None:
        self.say(json.dumps({"kind": "summary", **summary_facts(model, time.time())}))


class LiveScreen(LineScreen):
    """A live view on the terminal's alternate screen; the summary is printed on the normal screen afterwards."""

    interval_s = FRAME_EVERY_S
    live: Live

    def begin(self, model: DashboardModel) -> None:  # noqa: ARG002 - the first drawing follows with the first figures
        from rich.live import Live  # noqa: PLC0415 - rich is only for those who watch

        self.live = Live(auto_refresh=False, screen=True)
        self.live.start()

    def show(self, model: DashboardModel) -> None:
        from odradek.pipelines.rigs.dashboard_drawing import draw  # noqa: PLC0415 - rich is only for those who watch

        width, height = self.live.console.size
        self.live.update(draw(model, time.time(), self.address, width, height), refresh=True)

    def end(self, model: DashboardModel) -> None:
        self.live.stop()
        super().end(model)


def chosen_screen(address: str, *, as_json: bool) -> LineScreen:
    kind = JsonScreen if as_json else LiveScreen if sys.stdout.isatty() else LineScreen
    return kind(address, sys.stdout)


def watch(
    consumer: Consumer,
    admin: AdminClient,
    model: DashboardModel,
    screen: LineScreen,
    is_stopped: threading.Event,
    seconds: float | None = None,
) -> None:
    """Shows the pipeline's topics until `is_stopped`, or for a number of seconds."""
    follower = TopicFollower(consumer, admin, model)
    now = time.monotonic()
    ends_at = None if seconds is None else now + seconds
    shown_at = now
    screen.begin(model)
    try:
        while not is_stopped.is_set() and (ends_at is None or time.monotonic() < ends_at):
            follower.poll(0.1)
            if time.monotonic() - shown_at >= screen.interval_s:
                screen.show(model)
                shown_at = time.monotonic()
        follower.finish()
    finally:
        screen.end(model)
