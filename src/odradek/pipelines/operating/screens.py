"""Displays of a running pipeline: a line for each batch, one line of figures, or a log."""

from __future__ import annotations

import json
import shutil
import sys
import time
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING

from odradek.pipelines.operating.figures import clock_text, figures_line
from odradek.pipelines.operating.status import State

if TYPE_CHECKING:
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


class LiveLine(BatchLines):
    """One line of figures, which is written again and again below the messages."""

    def __init__(self, *, is_at_once: bool = False) -> None:
        """`is_at_once`: from the start, not once the pipeline runs."""
        self._is_at_once = is_at_once
        self._last: PipelineStatus | None = None

    def take(self, event: Event) -> None:
        """Nothing to do: the figures have the batches."""

    def say(self, text: str) -> None:
        self._clear()
        super().say(text)

    def show(self, status: PipelineStatus) -> None:
        if status.flows or self._is_at_once:
            self._last = status
            now_s = time.time()
            ran = "" if status.running_since_s is None else f" {clock_text(now_s - status.running_since_s)}"
            text = f"{status.name} {status.state}{ran}: {status.note or figures_line(status)}"
            self._clear()
            print(text[: shutil.get_terminal_size().columns - 1], end="", flush=True)

    def end(self) -> None:
        if self._last is not None:
            self._clear()
            print(f"{self._last.name}: {figures_line(self._last)}", flush=True)

    def _clear(self) -> None:
        if self._last is not None:
            print("\r\033[K", end="", flush=True)


def chosen_screen(*, as_json: bool) -> BatchLines:
    return BatchObjects() if as_json else LiveLine() if sys.stdout.isatty() else BatchLines()
