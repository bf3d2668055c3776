"""Processes are identified by id and start time; status files and rotating logs."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from odradek.pipelines.operating.log_files import KEPT_FILES, RotatingLog, follow_lines, last_lines, log_files
from odradek.pipelines.operating.processes import ProcessMark, boot_id, mark_of, own_mark
from odradek.pipelines.operating.publishing import Publisher
from odradek.pipelines.operating.screens import LogLines
from odradek.pipelines.operating.small_files import STATUS, folder_of, read_status, started_names, write_status
from odradek.pipelines.operating.status import PipelineStatus, State
from odradek.pipelines.operating.status_model import StatusModel

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE)
    yield process
    process.kill()
    process.communicate()


def test_a_process_is_alive_until_it_ends(sleeper: subprocess.Popen[bytes]) -> None:
    mark = mark_of(sleeper.pid)
    assert mark.is_alive
    assert mark.send(signal.SIGKILL)
    while mark.is_alive:
        time.sleep(0.01)  # a poll's pause
    assert not mark.send(signal.SIGKILL)  # not even as a zombie
    sleeper.wait()
    assert not mark.is_alive


def test_another_process_of_the_same_id_is_never_hurt(sleeper: subprocess.Popen[bytes]) -> None:
    stale = replace(mark_of(sleeper.pid), began="an earlier time")
    assert not stale.is_alive
    assert not stale.send(signal.SIGKILL)
    assert sleeper.poll() is None


def test_a_group_is_ended_with_its_first_process() -> None:
    script = "import subprocess, sys; subprocess.Popen([sys.executable, '-c', 'input()']); print(flush=True); input()"
    first = subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
    )
    assert first.stdin is not None
    assert first.stdout is not None
    first.stdout.readline()
    stale = replace(mark_of(first.pid), began="an earlier time")
    assert not stale.send_group(signal.SIGKILL)
    assert mark_of(first.pid).send_group(signal.SIGKILL)
    assert first.stdout.read() == b""  # both ends are closed
    assert first.wait() == -signal.SIGKILL
    first.stdin.close()
    first.stdout.close()


def test_a_mark_is_of_this_start_of_the_machine() -> None:
    if sys.platform == "linux":
        boot = boot_id()
        assert len(boot) == 36
        assert own_mark().began.endswith(f" {boot}")


def test_no_process_has_no_time_of_start() -> None:
    assert not ProcessMark(2**22 + 1, "").is_alive


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return tmp_path


def test_a_status_is_read_as_it_was_written(home: Path) -> None:
    mark = own_mark()
    status = PipelineStatus("p", State.RUNNING, pid=mark.pid, began=mark.began, restarts=3)
    write_status(folder_of("p"), status)
    assert read_status("p") == status
    assert started_names() == ["p"]
    assert [path.name for path in folder_of("p").iterdir()] == [STATUS]


def test_one_whose_process_is_gone_has_died(home: Path) -> None:
    status = PipelineStatus("p", State.RUNNING, pid=os.getpid(), began="an earlier time")
    write_status(folder_of("p"), status)
    found = read_status("p")
    assert found is not None
    assert found.state is State.DIED
    write_status(folder_of("p"), replace(status, state=State.STOPPED))
    found = read_status("p")
    assert found is not None
    assert found.state is State.STOPPED


@pytest.mark.parametrize("text", ["", "{", "{}", '{"name": "p", "state": "odd", "flows": [], "expectations": []}'])
def test_what_is_no_status_is_none(home: Path, text: str) -> None:
    folder_of("p").mkdir(parents=True)
    (folder_of("p") / STATUS).write_text(text)
    assert read_status("p") is None


def test_a_disk_that_is_full_ends_nothing(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A failed write of the status file is retried; a folder at its path simulates a full disk."""
    folder = folder_of("p")
    (folder / STATUS).mkdir(parents=True)
    model = StatusModel(PipelineStatus("p", State.STARTING))
    publisher = Publisher(model, LogLines(), folder)
    publisher.change(state=State.RUNNING)
    publisher.change(restarts=1)
    assert capsys.readouterr().out.count("the status file cannot be written") == 1
    assert [path.name for path in folder.iterdir()] == [STATUS]  # nothing is left of the attempts
    (folder / STATUS).rmdir()
    publisher.change(restarts=2)
    assert json.loads((folder / STATUS).read_text())["restarts"] == 2


@pytest.mark.skipif(sys.platform != "linux", reason="/dev/full is Linux's")
def test_a_log_on_a_full_disk_ends_nothing() -> None:
    script = (
        "from odradek.pipelines.operating.screens import LogLines; lines = LogLines();"
        "lines.say('one'); lines.say('two'); import os; os._exit(7)"
    )
    with open("/dev/full", "wb") as full:
        assert subprocess.run([sys.executable, "-c", script], stdout=full, check=False).returncode == 7


def test_a_full_log_is_put_aside_and_old_ones_go(tmp_path: Path) -> None:
    path = tmp_path / "log"
    reader, writer = os.pipe()
    log = RotatingLog(path, largest_bytes=10, descriptors=(writer,))
    log.open()
    for number in range(KEPT_FILES + 2):
        log.turn()
        os.write(writer, f"this is line {number}\n".encode())
    os.close(writer)
    os.close(reader)
    assert len(log_files(path)) == KEPT_FILES
    found: list[str] = []
    last_lines(path, 3, found.append)
    assert found == [f"this is line {number}" for number in (4, 5, 6)]


def test_a_log_is_followed_into_the_next_file(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text("one\ntwo\nthr")
    shown: list[str] = []
    position = last_lines(path, 1, shown.append)
    assert shown == ["two"]
    writes: list[Callable[[], object]] = [
        lambda: path.write_text("one\ntwo\nthree\nfour\n"),
        lambda: path.rename(tmp_path / "log.1"),
        lambda: path.write_text("five\n"),
    ]
    is_over = threading.Event()

    def pause() -> bool:
        if writes:
            writes.pop(0)()
        elif "five" in shown:
            is_over.set()
        return is_over.is_set()

    follow_lines(path, position, shown.append, pause)
    assert shown == ["two", "three", "four", "five"]
