"""A supervised pipeline: `run --restart` in the foreground, and the process that `start` leaves running."""

from __future__ import annotations

import contextlib
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from odradek.cli.pipeline.options import override_arguments
from odradek.cli.pipeline.status_topic import status_topic
from odradek.conventions.failures import Failure
from odradek.pipelines.operating.backoff import Backoff
from odradek.pipelines.operating.locks import Taken, held
from odradek.pipelines.operating.processes import own_mark
from odradek.pipelines.operating.publishing import publishing
from odradek.pipelines.operating.rotating_log import RotatingLog
from odradek.pipelines.operating.screens import LogLines, chosen_screen
from odradek.pipelines.operating.state_folders import LOCK, LOG
from odradek.pipelines.operating.status import PipelineStatus, State
from odradek.pipelines.operating.status_files import remove_failed_status
from odradek.pipelines.operating.status_model import StatusModel
from odradek.pipelines.operating.supervising import Supervisor

if TYPE_CHECKING:
    import threading
    from collections.abc import Iterator

    from odradek.cli.pipeline.options import Metrics
    from odradek.pipelines.definition.model import Pipeline
    from odradek.pipelines.operating.publishing import Publisher
    from odradek.pipelines.operating.screens import BatchLines


@contextlib.contextmanager
def published(found: Pipeline, screen: BatchLines, folder: Path | None, metrics: Metrics) -> Iterator[Publisher]:
    """Publish a pipeline's status to screen, file, metrics and, unless that is turned off, the status topic."""
    mark = own_mark()
    status = PipelineStatus(
        name=found.name, state=State.STARTING, file=str(Path(found.place.file).absolute()), engine=str(found.engine),
        pid=mark.pid, began=mark.began, started_s=time.time(),
    )  # fmt: skip
    with contextlib.ExitStack() as stack:
        try:
            publisher = stack.enter_context(publishing(StatusModel(status), screen, folder, metrics.host, metrics.port))
        except (OSError, OverflowError) as error:
            reason = getattr(error, "strerror", None) or error
            raise Failure(f"metrics cannot be served on {metrics.host}:{metrics.port}: {reason}") from None
        if metrics.has_status_topic:
            topic = stack.enter_context(status_topic(found, status, publisher.say))
            publisher.announce = None if topic is None else topic.offer
        yield publisher
        publisher.turn()


def run_supervised(
    file: str,
    found: Pipeline,
    engine: str | None,
    overrides: dict[str, Any],
    limits: list[str],
    metrics: Metrics,
    state_folder: str | None,
    is_stopped: threading.Event,
    *,
    as_json: bool,
) -> None:
    """Run attempts, each in its own process; Failure when the supervisor gives up."""
    command = [sys.executable, "-m", "odradek", "pipeline", "run", file, *limits]
    command += override_arguments(engine, found.name, overrides)
    folder = None if state_folder is None else Path(state_folder)
    screen = chosen_screen(as_json=as_json) if folder is None else LogLines()
    with contextlib.ExitStack() as stack:
        if folder is not None:
            try:
                stack.enter_context(held(folder / LOCK, f"pid {own_mark().pid}"))
            except Taken as taken:
                raise Failure(f"{found.name} is already running ({taken.owner})") from None
        publisher = stack.enter_context(published(found, screen, folder, metrics))
        log = None if folder is None else RotatingLog(folder / LOG)
        supervisor = Supervisor(
            command, publisher, is_stopped, Backoff(), must_run_at_once=folder is not None,
            each_turn=None if log is None else log.turn,
        )  # fmt: skip
        given_up = supervisor.run()
        if folder is not None:
            publisher.say("stopped" if given_up is None else f"ended: {given_up}")
    if given_up is not None:
        raise Failure(given_up)
    if folder is None:
        remove_failed_status(found.name)
