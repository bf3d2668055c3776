"""Brokers of a test session as forks of one process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from odradek.local.prepared import SWITCH, ForkedProcess, is_possible
from odradek.testing import RunningBroker, broker
from tests.waiting import eventually

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="brokers are forked on Linux only")


@pytest.fixture(autouse=True)
def forks_are_on(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (SWITCH, "COVERAGE_PROCESS_START", "COVERAGE_PROCESS_CONFIG"):
        monkeypatch.delenv(name, raising=False)


def cpu_ms(pid: int) -> float:
    return sum(int(each.read_text().split()[0]) for each in Path(f"/proc/{pid}/task").glob("*/schedstat")) / 1e6


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_a_second_broker_costs_a_part_of_a_start() -> None:
    with RunningBroker() as alone, broker() as first, broker() as second:
        assert not isinstance(alone.process, ForkedProcess)
        assert isinstance(first.process, ForkedProcess)
        assert cpu_ms(second.pid) < cpu_ms(alone.pid) / 2


def test_a_fork_stops_is_killed_and_restarts_as_a_process_of_its_own_does() -> None:
    with broker() as running:
        pid = running.pid
        running.kill()
        assert running.process is not None
        assert running.process.returncode == -signal.SIGKILL
        running.start()
        assert running.pid != pid
        running.stop()
        assert running.process.returncode == 0


@pytest.mark.parametrize(
    ("name", "value"), [(SWITCH, "off"), ("COVERAGE_PROCESS_START", ".coveragerc"), ("COVERAGE_PROCESS_CONFIG", "{}")]
)
def test_it_can_be_turned_off_and_is_off_while_coverage_measures_children(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    assert is_possible()
    monkeypatch.setenv(name, value)
    assert not is_possible()
    with broker() as running:
        assert not isinstance(running.process, ForkedProcess)


def test_the_prepared_process_and_its_brokers_end_with_a_test_process_that_is_killed() -> None:
    program = (
        "import sys; from odradek.local.prepared import prepared_process; from odradek.testing import broker\n"
        "with broker() as running:\n"
        "    print(prepared_process()._process.pid, running.pid, flush=True); sys.stdin.read()"
    )
    environment = {name: value for name, value in os.environ.items() if name != SWITCH}
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    ) as test:
        assert test.stdout is not None
        pids = [int(each) for each in test.stdout.readline().split()]
        assert len(pids) == 2
        assert all(is_alive(pid) for pid in pids)
        test.kill()
    eventually(lambda: not any(is_alive(pid) for pid in pids))
