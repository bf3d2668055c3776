"""The stages of a start of `odradek up`, which are shown with their durations: brokers, definition, Spark, flows, first
output."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from odradek.cli.pipeline.process import RUNNING, PipelineProcess
from odradek.conventions.failures import Failure
from odradek.examples.live_view.stages import Stages
from odradek.examples.live_view.text import servers_text

if TYPE_CHECKING:
    import threading
    from collections.abc import Mapping

    from odradek.examples.live_view.screens import LineScreen

PIPELINE, SPARK, FLOWS, OUTPUT = "definition", "Spark", "flows", "first output"
SPARK_STARTS = "starting Spark "
SPARK_IS_READY = "Spark is ready"
FAILED = "failed: "  # an attempt of the pipeline, which is started again
RETRYING = "; retrying in "
FAILURES_OF_A_LOOP = 2  # the pipeline may run between them, but it does not recover
SHOW_EVERY_S = 0.1


class Starting:
    """Turns the lines of `odradek pipeline run` into stages."""

    def __init__(self, screen: LineScreen, is_stopped: threading.Event, *, brokers_to_start: int) -> None:
        self._starts_brokers = brokers_to_start > 0
        brokers = ["broker" if brokers_to_start == 1 else "brokers"] if self._starts_brokers else []
        self.stages = Stages.named(*brokers, PIPELINE, SPARK, FLOWS, OUTPUT)
        self._screen = screen
        self._is_stopped = is_stopped
        self._failures = 0  # of the pipeline
        self._last_failure = ""

    def begin(self) -> None:
        self.stages.advance(time.time())
        self._screen.show_start(self.stages)

    def brokers_are_ready(self, bootstrap_servers: str) -> None:
        if self._starts_brokers:
            self.stages.advance(time.time(), servers_text(bootstrap_servers))
        self._screen.show_start(self.stages)

    def take_line(self, line: str) -> None:
        """Called on the thread that reads the output of the pipeline. A pipeline that failed and is started again
        repeats its lines."""
        now_s = time.time()
        if line.startswith(SPARK_STARTS):
            self.stages.advance_to(SPARK, now_s)
            self.stages.note(line.removeprefix("starting "))
        elif line.startswith(SPARK_IS_READY):
            self.stages.advance_to(FLOWS, now_s)
        elif RUNNING in line:
            if self._failures < FAILURES_OF_A_LOOP:
                self._screen.show_failure("")
            if self.stages.advance_to(FLOWS, now_s):
                self.stages.advance(now_s, line.partition(RUNNING)[2])
        elif line.startswith(FAILED):
            self._failures += 1
            self._last_failure = line.removeprefix(FAILED).partition(RETRYING)[0]
            again = f" {self._failures} times" if self._failures > 1 else ""
            self._screen.show_failure(f"the pipeline failed{again}: {line.removeprefix(FAILED)}")
        else:
            self.stages.note(line)

    def wait(self, process: PipelineProcess, seconds: float | None) -> bool:
        """Shows the stages until the pipeline runs or has ended, at most for `seconds` after its first failure; returns
        whether it runs."""
        ends_at: float | None = None
        while not process.wait_until_running(SHOW_EVERY_S) and not self._is_stopped.is_set():
            self._screen.show_start(self.stages)
            if ends_at is None and self._screen.failure and seconds is not None:
                ends_at = time.monotonic() + seconds
            if ends_at is not None and time.monotonic() >= ends_at:
                return False
        return not self._is_stopped.is_set()

    def raise_failure(self) -> None:
        """Raise a Failure if the pipeline failed again and again, or failed and has output nothing."""
        if self._failures >= FAILURES_OF_A_LOOP:
            raise Failure(f"the pipeline failed {self._failures} times; the last time: {self._last_failure}")
        if self._failures and (self._screen.failure or not self.stages.is_over):
            raise Failure(f"the pipeline failed: {self._last_failure}")


def pipeline_picture(file: str, environment: Mapping[str, str]) -> list[str]:
    """The lineage of the pipeline as lines; nothing if the definition has errors, which the pipeline reports."""
    from odradek.pipelines.definition.drawing import draw_text
    from odradek.pipelines.definition.loading import load_file

    pipelines = [each.pipeline for each in load_file(file, environment) if each.pipeline is not None and each.is_sound]
    return draw_text(pipelines[0]).splitlines() if pipelines else []
