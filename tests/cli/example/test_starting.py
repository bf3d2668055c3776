"""The stages of `odradek up`, with a pipeline that fails and is started again."""

from __future__ import annotations

import io
import threading
from typing import TYPE_CHECKING

from odradek.cli.example.starting import OUTPUT, Starting
from odradek.pipelines.examples.live_view.screens import LineScreen

if TYPE_CHECKING:
    import pytest

FAILURE = "failed: the Python worker did not connect; retrying in 1 s"
START = ("starting Spark 4.3.0 on local[2]", "Spark is ready (2 s)")
RUNS = "rigs runs: readings, warnings"


def test_a_failure_is_shown_until_the_pipeline_runs_again(capsys: pytest.CaptureFixture[str]) -> None:
    screen = LineScreen("oil rigs", io.StringIO())
    starting = Starting(screen, threading.Event(), brokers_to_start=1)
    starting.begin()
    starting.brokers_are_ready("127.0.0.1:9092")
    for line in (*START, FAILURE):
        starting.take_line(line)
    assert screen.failure == f"the pipeline {FAILURE}"
    for line in (*START, RUNS):
        starting.take_line(line)
    assert screen.failure == ""
    for line in (FAILURE, *START, RUNS):
        starting.take_line(line)
    assert screen.failure == ""
    assert starting.stages.current is not None
    assert starting.stages.current.name == OUTPUT  # nothing was output
    assert capsys.readouterr().err.count(f"the pipeline {FAILURE}\n") == 2
