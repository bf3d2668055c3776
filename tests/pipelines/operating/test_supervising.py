"""The supervisor with real processes, small Python scripts that fail, end and react to signals like a pipeline."""

from __future__ import annotations

import json
import os
import signal
import sys
import textwrap
import threading
import time
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from odradek.pipelines.operating.backoff import Backoff
from odradek.pipelines.operating.publishing import Publisher
from odradek.pipelines.operating.screens import BatchLines
from odradek.pipelines.operating.small_files import STATUS, attempt_in
from odradek.pipelines.operating.status import PipelineStatus, State
from odradek.pipelines.operating.status_model import StatusModel
from odradek.pipelines.operating.supervising import Supervisor

if TYPE_CHECKING:
    from pathlib import Path

QUICK = Backoff(first_s=0.01, most_s=0.05, most_failures=4)
HEAD = """
import json, os, signal, sys, time
events = int(sys.argv[-2].partition("=")[2])
leash = int(sys.argv[-1].partition("=")[2])
def tell(**event): os.write(events, json.dumps(event).encode() + b"\\n")
def fail(retry):
    tell(kind="failed", error="it broke", retry=retry)
    sys.exit(1)
"""


class Reported(BatchLines):
    """Records messages."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.states: list[State] = []

    def say(self, text: str) -> None:
        self.lines.append(text)

    def show(self, status: PipelineStatus) -> None:
        if self.states[-1:] != [status.state]:
            self.states.append(status.state)


class Stage:
    def __init__(self, script: str, *, must_run_at_once: bool = False) -> None:
        self.reported = Reported()
        self.model = StatusModel(PipelineStatus("p", State.STARTING))
        self.is_stopped = threading.Event()
        command = [sys.executable, "-c", HEAD + textwrap.dedent(script)]
        self.publisher = Publisher(self.model, self.reported)
        self.supervisor = Supervisor(command, self.publisher, self.is_stopped, QUICK, must_run_at_once=must_run_at_once)

    @property
    def status(self) -> PipelineStatus:
        return self.model.snapshot(time.time())


def test_a_pipeline_that_is_done_is_not_started_again() -> None:
    stage = Stage("tell(kind='running', flows=['a']); print('hello')")
    assert stage.supervisor.run() is None
    assert stage.status.state is State.STOPPED
    assert stage.status.restarts == 0
    assert stage.reported.lines == ["hello"]


def test_it_is_started_again_until_it_runs(tmp_path: Path) -> None:
    tries = tmp_path / "tries"
    stage = Stage(f"""
        with open({str(tries)!r}, "a") as file: file.write("x")
        if os.path.getsize({str(tries)!r}) < 4: fail("likely")
        tell(kind="running", flows=["a"])
    """)
    assert stage.supervisor.run() is None
    assert tries.read_text() == "xxxx"
    assert stage.status.restarts == 3
    assert stage.status.last_error == "it broke"
    assert State.WAITING in stage.reported.states
    assert sum("retrying in" in line for line in stage.reported.lines) == 3


def test_what_cannot_heal_ends_it_at_once() -> None:
    stage = Stage("tell(kind='running', flows=[]); fail('never')")
    given_up = stage.supervisor.run()
    assert given_up is not None
    assert "it broke" in given_up
    assert stage.status.state is State.FAILED
    assert stage.status.restarts == 0


def test_it_gives_up_on_a_batch_that_fails_again_and_again() -> None:
    stage = Stage("tell(kind='running', flows=[]); fail('perhaps')")
    given_up = stage.supervisor.run()
    assert given_up is not None
    assert "4 consecutive failures" in given_up
    assert stage.status.restarts == 3


def test_it_gives_up_sooner_on_a_pipeline_that_never_runs() -> None:
    stage = Stage("fail('perhaps')")
    assert stage.supervisor.run() == "gave up after 3 consecutive failures; the last one: it broke"


def test_what_ran_long_without_a_batch_counts_as_a_failure_in_a_row() -> None:
    stage = Stage("tell(kind='running', flows=[]); fail('perhaps')")
    stage.supervisor._backoff = replace(QUICK, well_s=0)
    assert "4 consecutive failures" in (stage.supervisor.run() or "")


def test_the_status_names_the_process_of_the_attempt(tmp_path: Path) -> None:
    """The id is published so that the child can be killed after the supervisor was killed."""
    stage = Stage("tell(kind='running', flows=['a']); os.read(leash, 1)")
    stage.publisher._folder = tmp_path
    thread = threading.Thread(target=stage.supervisor.run)
    thread.start()
    try:
        while stage.model.state is not State.RUNNING:
            time.sleep(0.01)  # a poll's pause
        attempt = attempt_in(stage.status)
        assert attempt is not None
        assert os.getpgid(attempt.pid) == attempt.pid
        assert json.loads((tmp_path / STATUS).read_text())["attempt_pid"] == attempt.pid
        stage.is_stopped.set()
        assert attempt.send_group(signal.SIGKILL)
    finally:
        stage.is_stopped.set()
        thread.join()
    assert attempt_in(stage.status) is None


def test_one_that_is_started_must_run_at_once() -> None:
    stage = Stage("fail('likely')", must_run_at_once=True)
    assert stage.supervisor.run() == "it broke"
    assert stage.status.state is State.FAILED


def test_a_process_that_is_killed_is_started_again(tmp_path: Path) -> None:
    tries = tmp_path / "tries"
    stage = Stage(f"""
        tell(kind="running", flows=["a"])
        if not os.path.exists({str(tries)!r}):
            open({str(tries)!r}, "w").close()
            os.kill(os.getpid(), signal.SIGKILL)
    """)
    assert stage.supervisor.run() is None
    assert stage.status.restarts == 1
    assert "signal 9" in (stage.status.last_error or "")


@pytest.mark.timeout(60)
def test_it_stops_when_it_is_asked_to() -> None:
    stage = Stage("""
        def stop(*_): tell(kind="note", text="stopping"); sys.exit(0)
        signal.signal(signal.SIGINT, stop)
        tell(kind="running", flows=["a"])
        signal.pause()
    """)
    thread = threading.Thread(target=stage.supervisor.run)
    thread.start()
    while stage.model.state is not State.RUNNING:
        time.sleep(0.01)  # a poll's pause
    stage.is_stopped.set()
    thread.join()
    assert stage.status.state is State.STOPPED
    assert "stopping" in stage.reported.lines


def test_a_pause_ends_when_it_is_asked_to_stop() -> None:
    stage = Stage("fail('likely')")
    stage.supervisor._backoff = Backoff(first_s=1000, most_s=1000)
    thread = threading.Thread(target=stage.supervisor.run)
    thread.start()
    while stage.model.state is not State.WAITING:
        time.sleep(0.01)  # a poll's pause
    stage.is_stopped.set()
    thread.join(20)
    assert not thread.is_alive()
    assert stage.status.state is State.STOPPED


def test_a_pipeline_ends_with_its_supervisor(tmp_path: Path) -> None:
    """Even if the supervisor is killed, because its end of the pipe is closed."""
    script = HEAD + textwrap.dedent(f"""
        open({str(tmp_path / "runs")!r}, "w").write(str(os.getpid()))
        os.read(leash, 1)
        os.rename({str(tmp_path / "runs")!r}, {str(tmp_path / "over")!r})
    """)
    owner = textwrap.dedent(f"""
        import sys
        from odradek.pipelines.operating.attempts import Attempt
        with Attempt([sys.executable, "-c", {script!r}]) as attempt:
            while not attempt.is_over: list(attempt.poll(1))
    """)
    pid = os.spawnv(os.P_NOWAIT, sys.executable, [sys.executable, "-c", owner])
    await_file(tmp_path / "runs")
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    await_file(tmp_path / "over")


def await_file(path: Path) -> None:
    give_up_at = time.monotonic() + 60
    while not path.exists():
        assert time.monotonic() < give_up_at
        time.sleep(0.01)  # a poll's pause
