"""The stages of `odradek up`, with a pipeline that fails and is started again."""

from __future__ import annotations

import io
import sys
import threading
import time
from types import SimpleNamespace
from typing import Any, cast

import pytest
from click.testing import CliRunner

from odradek.cli.example import read_view
from odradek.cli.up import KEEPS_UP_S, OUTPUT, RAISE_EVERY_S, Ramp, Starting, up
from odradek.conventions.failures import Failure
from odradek.examples.folders import find_example
from odradek.examples.live_view.model import LiveViewModel
from odradek.examples.live_view.screens import LineScreen

FAILURE = "failed: the Python worker did not connect; retrying in 1 s"
START = ("starting Spark 4.3.0 on local[2]", "Spark is ready (2 s)")
RUNS = "rigs runs: readings, warnings"
SUPERVISOR = """
import signal, sys
signal.signal(signal.SIGINT, lambda *_: sys.exit(0))
for line in sys.argv[1:-1]:  # the last is --stop-with
    sys.stderr.write(line + "\\n")
sys.stderr.flush()
signal.pause()
"""


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
    starting.take_line(FAILURE)
    assert screen.failure == "the pipeline failed 2 times: the Python worker did not connect; retrying in 1 s"
    assert starting.stages.current is not None
    assert starting.stages.current.name == OUTPUT  # nothing was output
    assert capsys.readouterr().err.count("the Python worker did not connect") == 2


@pytest.mark.timeout(60)
@pytest.mark.parametrize("lines", [(*START, FAILURE), (*START, RUNS, FAILURE), (*START, FAILURE, *START, RUNS)])
def test_a_pipeline_that_does_not_run_in_the_end_has_failed(
    monkeypatch: pytest.MonkeyPatch, lines: tuple[str, ...]
) -> None:
    """Also if it has never run, so that `--seconds` would not begin, or runs again and outputs nothing."""
    command = [sys.executable, "-c", SUPERVISOR, *lines]
    monkeypatch.setattr("odradek.cli.up.odradek_command", lambda *_: command)
    options = ["--port", "0", "--seconds", "1", "--rate", "10", "--no-console"]
    ended = CliRunner().invoke(up, options, standalone_mode=False)
    assert isinstance(ended.exception, Failure)
    assert ended.exception.message == "the pipeline failed: the Python worker did not connect"


def test_a_pipeline_that_recovers_has_not_failed() -> None:
    starting = Starting(LineScreen("oil rigs", io.StringIO()), threading.Event(), brokers_to_start=0)
    starting.begin()
    for line in (*START, FAILURE, *START, RUNS):
        starting.take_line(line)
    starting.stages.advance(time.time())  # the first output
    starting.raise_failure()


def test_a_pipeline_that_fails_again_and_again_is_in_the_summary_and_in_the_exit_code() -> None:
    """It runs for a while after each start."""
    output = io.StringIO()
    screen = LineScreen("oil rigs", output)
    starting = Starting(screen, threading.Event(), brokers_to_start=0)
    starting.begin()
    for line in (*START, RUNS, FAILURE, *START, RUNS, FAILURE, *START, RUNS):
        starting.take_line(line)
    starting.stages.advance(time.time())
    screen.end(LiveViewModel(read_view(find_example("rigs")), time.time()))
    assert output.getvalue().splitlines()[-1] == (
        "the pipeline failed 2 times: the Python worker did not connect; retrying in 1 s"
    )
    with pytest.raises(Failure, match="the pipeline failed 2 times; the last time: the Python worker did not connect"):
        starting.raise_failure()


def test_the_rate_is_raised_while_the_pipeline_keeps_up() -> None:
    sender = SimpleNamespace(rate=100.0)
    model = SimpleNamespace(has_output=False, lag=SimpleNamespace(records=0))
    ramp, now_s = Ramp(cast("Any", sender), 1000.0, cast("Any", model)), 1000.0
    rates = []
    for has_output, late_s in [
        (False, 0),
        (True, 0),
        (True, KEEPS_UP_S + 1),
        (True, 0),
        (True, 0),
        (True, 0),
        (True, 9),
    ]:
        model.has_output, model.lag.records = has_output, late_s * sender.rate
        ramp.turn(now_s)
        ramp.turn(now_s)
        rates.append(sender.rate)
        now_s += RAISE_EVERY_S
    assert rates == [100, 200, 200, 400, 800, 1000, 1000]
