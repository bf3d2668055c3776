"""Displays of a running pipeline: a line for each batch, a live view, or a log."""

from __future__ import annotations

import json
import sys
import time
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING

from odradek.pipelines.operating.figures import figures_line
from odradek.pipelines.operating.status import State

if TYPE_CHECKING:
    from rich.live import Live

    from odradek.pipelines.operating.events import Event
    from odradek.pipelines.operating.status import PipelineStatus

SUMMARY_EVERY_S = 60.0


class BatchLines:
    """Prints a line for each batch with rows; messages go to standard error."""

    def take(self, event: Event) -> None:
        if event["kind"] == "batch" and event["rows"] != 0:
            print(event["text"], flush=True)

    def say(self, text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    def show(self, status: PipelineStatus) -> None:
        """Nothing to do: each batch is printed."""

    def end(self) -> None:
        """Nothing to restore."""


class BatchObjects(BatchLines):
    """Prints each batch as a JSON object."""

    def take(self, event: Event) -> None:
        if event["kind"] == "batch":
            found = {key: value for key, value in event.items() if key not in {"kind", "text"}}
            print(json.dumps(found, ensure_ascii=False, separators=(",", ":")), flush=True)


class LogLines(BatchLines):
    """Lines for a log file: events with their time, and the status once a minute."""

    def __init__(self) -> None:
        self._next_s = 0.0

    def take(self, event: Event) -> None:
        """Nothing to do: single batches are not logged."""

    def say(self, text: str) -> None:
        with suppress(OSError):  # a full disk must not end the pipeline
            print(f"{datetime.now().astimezone().isoformat(timespec='milliseconds')} {text}", flush=True)

    def show(self, status: PipelineStatus) -> None:
        now_s = time.monotonic()
        if status.state is State.RUNNING and now_s >= self._next_s:
            if self._next_s:
                self.say(figures_line(status))
            self._next_s = now_s + SUMMARY_EVERY_S


class LiveView(BatchLines):
    """A live view, from the start or once the pipeline runs; prints lines before and after it."""

    def __init__(self, *, is_at_once: bool = False) -> None:
        self._is_at_once = is_at_once
        self._live: Live | None = None
        self._last: PipelineStatus | None = None

    def take(self, event: Event) -> None:
        """Nothing to do: the live view shows the batches."""

    def say(self, text: str) -> None:
        if self._live is None:
            super().say(text)

    def show(self, status: PipelineStatus) -> None:
        from rich.live import Live  # noqa: PLC0415 - rich is only for those who watch

        from odradek.pipelines.operating.drawing import draw  # noqa: PLC0415

        if self._live is None:
            if not status.flows and not self._is_at_once:
                return
            self._live = Live(auto_refresh=False, screen=True)
            self._live.start()
        self._last = status
        self._live.update(draw(status, time.time(), self._live.console.width), refresh=True)

    def end(self) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None
        if self._last is not None:
            print(f"{self._last.name}: {figures_line(self._last)}", flush=True)


def chosen_screen(*, as_json: bool) -> BatchLines:
    return BatchObjects() if as_json else LiveView() if sys.stdout.isatty() else BatchLines()
