"""Started pipelines: `odradek pipeline forget`, and the entries of pipelines that have ended."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, Any

import pytest

from odradek.cli.main import run
from odradek.pipelines.operating.processes import own_mark
from odradek.pipelines.operating.small_files import folder_of, read_status, remove_failed_status, write_status
from odradek.pipelines.operating.status import PipelineStatus, State

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(autouse=True)
def state_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))


def write(name: str, state: State, *, is_alive: bool = False, **fields: Any) -> None:
    mark = own_mark()
    status = PipelineStatus(name, state, pid=mark.pid, began=mark.began if is_alive else "long ago", **fields)
    write_status(folder_of(name), status)


def test_an_entry_is_removed_and_its_log_stays(capsys: pytest.CaptureFixture[str]) -> None:
    write("rigs", State.RUNNING)  # its process is gone
    (folder_of("rigs") / "log").write_text("a line\n")
    assert run(["pipeline", "status"]) == 0
    assert "died" in capsys.readouterr().out
    assert run(["pipeline", "forget", "rigs"]) == 0
    assert run(["pipeline", "status"]) == 0
    assert "died" not in capsys.readouterr().out
    assert (folder_of("rigs") / "log").exists()


def test_a_pipeline_that_was_restarted_shows_why_and_when(capsys: pytest.CaptureFixture[str]) -> None:
    failed = {"last_error": "no such column", "last_error_s": time.time() - 125, "restarts": 3}
    write("rigs", State.RUNNING, is_alive=True, **failed)
    assert run(["pipeline", "status"]) == 0
    assert re.search(r"^rigs failed 2:\d\d ago: no such column$", capsys.readouterr().out, re.MULTILINE)


def test_what_runs_is_not_forgotten(capsys: pytest.CaptureFixture[str]) -> None:
    write("rigs", State.RUNNING, is_alive=True)
    write("old", State.FAILED)
    assert run(["pipeline", "forget", "rigs"]) == 1
    assert "rigs is running; stop it first: `odradek pipeline stop rigs`" in capsys.readouterr().err
    assert run(["pipeline", "forget", "--ended"]) == 0
    assert read_status("old") is None
    assert read_status("rigs") is not None


def test_a_name_that_was_never_started(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["pipeline", "forget", "rigs"]) == 1
    assert "no pipeline rigs was started on this machine" in capsys.readouterr().err
    assert run(["pipeline", "forget"]) == 2


@pytest.mark.parametrize(("state", "stays"), [(State.RUNNING, False), (State.FAILED, False), (State.STOPPED, True)])
def test_a_successful_run_clears_an_earlier_failure(state: State, stays: bool) -> None:
    write("rigs", state)
    remove_failed_status("rigs")
    assert (read_status("rigs") is not None) == stays
