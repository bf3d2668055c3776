"""The owner of a pipeline's status: takes its events and publishes the status to a screen, a file and metrics."""

from __future__ import annotations

import time
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from odradek.pipelines.operating.metrics import MetricsServer, metrics_text
from odradek.pipelines.operating.small_files import write_status

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from odradek.pipelines.operating.events import Event
    from odradek.pipelines.operating.screens import BatchLines
    from odradek.pipelines.operating.status import PipelineStatus
    from odradek.pipelines.operating.status_model import StatusModel

SHOW_EVERY_S = 0.5


class Publisher:
    """Publishes the status of a pipeline; not thread-safe."""

    def __init__(
        self, model: StatusModel, screen: BatchLines, folder: Path | None = None, metrics: MetricsServer | None = None
    ) -> None:
        self.announce: Callable[[PipelineStatus], None] | None = None  # to others than the user of this machine
        self.model = model
        self._screen, self._folder, self._metrics = screen, folder, metrics
        self._next_s = 0.0
        self._is_unwritable = False

    def take(self, event: Event) -> None:
        self.model.take(event, time.time())
        if event["kind"] == "note":
            self._screen.say(event["text"])
        self._screen.take(event)

    def say(self, text: str) -> None:
        self._screen.say(text)

    def change(self, **changes: object) -> None:
        """Changes fields of the status and publishes it at once."""
        self.model.change(time.time(), **changes)
        self._next_s = 0.0
        self.turn()

    def turn(self) -> None:
        """Publishes the status; rate-limited, so that it can be called often."""
        now_s = time.monotonic()
        if now_s < self._next_s:
            return
        self._next_s = now_s + SHOW_EVERY_S
        status = self.model.snapshot(time.time())
        if self._folder is not None:
            self._write(self._folder, status)
        if self._metrics is not None:
            self._metrics.text = metrics_text(status)
        if self.announce is not None:
            self.announce(status)
        self._screen.show(status)

    def _write(self, folder: Path, status: PipelineStatus) -> None:
        """Writes the status file; an error, such as a full disk, does not end the pipeline: the next turn retries."""
        try:
            write_status(folder, status)
            self._is_unwritable = False
        except OSError as error:
            if not self._is_unwritable:
                self._screen.say(f"the status file cannot be written: {error.strerror}; retrying")
            self._is_unwritable = True


@contextmanager
def publishing(
    model: StatusModel, screen: BatchLines, folder: Path | None, metrics_host: str, metrics_port: int | None
) -> Iterator[Publisher]:
    """A publisher, with a metrics server if requested; OSError if its port is in use."""
    with ExitStack() as stack:
        metrics = None if metrics_port is None else stack.enter_context(MetricsServer(metrics_host, metrics_port))
        publisher = Publisher(model, screen, folder, metrics)
        stack.callback(screen.end)
        if metrics is not None:
            model.change(time.time(), metrics_address=metrics.address)
            publisher.say(f"metrics are on http://{metrics.address}/metrics")
        yield publisher
