"""The stages of `odradek up`, with a pipeline that fails and is started again."""

from __future__ import annotations

import io
import subprocess
import sys
import threading
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from odradek.cli.example.starting import OUTPUT, Starting
from odradek.cli.example.up import up
from odradek.cli.framework.failure import Failure
from odradek.host.lifetime_pipe import LifetimePipe
from odradek.pipelines.examples.live_view.screens import LineScreen

if TYPE_CHECKING:
    from collections.abc import Sequence

FAILURE = "failed: the Python worker did not connect; retrying in 1 s"
START = ("starting Spark 4.3.0 on local[2]", "Spark is ready (2 s)")
RUNS = "rigs runs: readings, warnings"
SUPERVISOR = """
import signal, sys
signal.signal(signal.SIGINT, lambda *_: sys.exit(0))
for line in sys.argv[1:]:
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
    for line in (FAILURE, *START, RUNS):
        starting.take_line(line)
    assert screen.failure == ""
    assert starting.stages.current is not None
    assert starting.stages.current.name == OUTPUT  # nothing was output
    assert capsys.readouterr().err.count(f"the pipeline {FAILURE}\n") == 2


@pytest.mark.timeout(60)
@pytest.mark.parametrize("lines", [(*START, FAILURE), (*START, RUNS, FAILURE), (*START, FAILURE, *START, RUNS)])
def test_a_pipeline_that_does_not_run_in_the_end_has_failed(
    monkeypatch: pytest.MonkeyPatch, lines: tuple[str, ...]
) -> None:
    """Also if it has never run, so that `--seconds` would not begin."""

    def start(_command: Sequence[str], _arguments: Sequence[str]) -> tuple[subprocess.Popen[str], LifetimePipe]:
        command = [sys.executable, "-c", SUPERVISOR, *lines]
        return subprocess.Popen(command, stderr=subprocess.PIPE, text=True), LifetimePipe()

    monkeypatch.setattr("odradek.cli.pipeline.process.start_command", start)
    options = ["--port", "0", "--seconds", "1", "--rate", "10", "--no-console"]
    ended = CliRunner().invoke(up, options, standalone_mode=False)
    if lines[-1] == RUNS:
        assert ended.exception is None
    else:
        assert isinstance(ended.exception, Failure)
        assert ended.exception.message == "the pipeline failed: the Python worker did not connect"
