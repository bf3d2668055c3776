"""The rules of `odradek broker --processes`; `tests/cli/cluster/test_three_brokers.py` runs it."""

from __future__ import annotations

import io
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from odradek.local.supervisor import LONGEST_DELAY_S, STABLE_AFTER_S, RestartDelays, write_log_line

if TYPE_CHECKING:
    from pathlib import Path

    from tests.commands import Run


def test_a_broker_that_keeps_dying_is_started_less_and_less_often() -> None:
    delays = RestartDelays()
    found = []
    for now in range(8):
        delays.is_ready(1, now)
        found.append(delays.after_death(1, now + 0.5))
    assert found == [0.5, 1, 2, 4, 8, 16, LONGEST_DELAY_S, LONGEST_DELAY_S]
    assert delays.after_death(2, 9) == 0.5


def test_a_broker_that_was_stable_is_started_soon() -> None:
    delays = RestartDelays()
    for now in range(5):
        delays.after_death(1, now)
    delays.is_ready(1, 10)
    assert delays.after_death(1, 10 + STABLE_AFTER_S) == 0.5


def test_several_processes_need_zookeeper(offline: Run) -> None:
    ran = offline("broker", "--processes", "2")
    assert ran.code == 1
    assert "needs zookeeper.connect" in ran.errors
    assert "odradek zookeeper" in ran.errors


def test_the_directory_of_a_single_broker_is_refused(offline: Run, tmp_path: Path) -> None:
    (tmp_path / "meta.properties").touch()
    overrides = ("--override", "zookeeper.connect=127.0.0.1:1", "--override", f"log.dirs={tmp_path}")
    ran = offline("broker", "--processes", "2", *overrides)
    assert ran.code == 1
    assert f"move its files to {tmp_path}/broker-0" in ran.errors


@pytest.mark.timeout(180)
def test_a_broker_that_does_not_start_ends_the_command_with_its_error(offline: Run, tmp_path: Path) -> None:
    overrides = ("zookeeper.connect=127.0.0.1:1", "zookeeper.connection.timeout.ms=200", f"log.dirs={tmp_path}")
    ran = offline("broker", "--processes", "2", *(f"--override={each}" for each in overrides), timeout_s=120)
    assert ran.code == 1
    assert "127.0.0.1:1" in ran.errors
    assert ran.errors.splitlines()[-1].startswith("odradek: error: broker ")


def test_lines_of_several_threads_do_not_join(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Standard error is like this with PYTHONUNBUFFERED."""
    line, count = "x" * 200, 20_000
    with (tmp_path / "log").open("wb", buffering=0) as file, ThreadPoolExecutor(4) as threads:
        monkeypatch.setattr(sys, "stderr", io.TextIOWrapper(file, write_through=True))
        list(threads.map(write_log_line, [line] * count))
    assert Counter((tmp_path / "log").read_text().splitlines()) == {line: count}
