"""Brokers of a test session as forks of one process."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from odradek.local import prepared
from odradek.local.prepared import FORKS_VARIABLE, ForkedProcess, PreparedProcess, is_possible, prepared_process
from odradek.testing import RunningBroker, broker
from tests.waiting import eventually

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="brokers are forked on Linux only")


@pytest.fixture(autouse=True)
def forks_are_on(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (FORKS_VARIABLE, *prepared.COVERAGE_VARIABLES):
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
    ("name", "value"),
    [(FORKS_VARIABLE, "off"), ("COVERAGE_PROCESS_START", ".coveragerc"), ("COVERAGE_PROCESS_CONFIG", "{}")],
)
def test_it_can_be_turned_off_and_is_off_while_coverage_measures_children(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    assert is_possible()
    monkeypatch.setenv(name, value)
    assert not is_possible()
    with broker() as running:
        assert not isinstance(running.process, ForkedProcess)


PROGRAM = """
import sys
from odradek.local.prepared import prepared_process
from odradek.testing import broker
try:
    with broker() as running:
        print(prepared_process()._process.pid, running.pid, running.data_directory, flush=True)
        sys.stdin.read()
except KeyboardInterrupt:
    print(running.process.returncode)
"""


@pytest.fixture
def program() -> Iterator[subprocess.Popen[str]]:
    """A test process with a forked broker, in a process group of its own, as a shell starts it."""
    environment = {name: value for name, value in os.environ.items() if name != FORKS_VARIABLE}
    pipe = subprocess.PIPE
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM],
        stdin=pipe, stdout=pipe, stderr=pipe, text=True, env=environment, process_group=0,
    ) as started:  # fmt: skip
        yield started
        started.kill()


def first_line(program: subprocess.Popen[str]) -> tuple[list[int], Path]:
    assert program.stdout is not None
    *pids, directory = program.stdout.readline().split()
    assert all(is_alive(int(pid)) for pid in pids)
    return [int(pid) for pid in pids], Path(directory)


def test_the_prepared_process_and_its_brokers_end_silently_with_a_test_process_that_is_killed(
    program: subprocess.Popen[str],
) -> None:
    pids, _ = first_line(program)
    program.kill()
    eventually(lambda: not any(is_alive(pid) for pid in pids))
    assert program.stderr is not None
    assert program.stderr.read() == ""


def test_a_test_process_stops_its_brokers_after_ctrl_c_in_its_terminal(program: subprocess.Popen[str]) -> None:
    pids, directory = first_line(program)
    os.killpg(program.pid, signal.SIGINT)
    assert program.communicate(timeout=60) == ("0\n", "")
    assert program.returncode == 0
    eventually(lambda: not any(is_alive(pid) for pid in pids))
    assert not directory.exists()


def test_a_client_that_sends_no_request_is_ignored(capfd: pytest.CaptureFixture[str]) -> None:
    server = PreparedProcess(())
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as client:
        client.connect(server._path)
        client.shutdown(socket.SHUT_WR)
        assert client.recv(1) == b""
    server.close()
    assert server._process.wait(60) == 0
    assert capfd.readouterr().err == ""


def test_a_broker_whose_supervisor_was_killed_is_killed() -> None:
    with broker() as running:
        assert running.process is not None
        supervisor = int(Path(f"/proc/{running.pid}/stat").read_text().rpartition(")")[2].split()[1])
        os.kill(supervisor, signal.SIGKILL)
        assert running.process.wait(60) == -signal.SIGKILL
        eventually(lambda: not is_alive(running.pid))


def test_a_prepared_process_that_has_ended_is_replaced() -> None:
    ended = prepared_process()
    ended._process.kill()
    ended._process.wait(60)
    with broker() as running:
        assert isinstance(running.process, ForkedProcess)
    assert not os.path.exists(ended._directory.name)


def test_a_broker_starts_alone_if_the_prepared_process_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    suspended = prepared_process()
    os.kill(suspended._process.pid, signal.SIGSTOP)
    monkeypatch.setattr(prepared, "START_TIMEOUT_S", 0.1)
    with broker() as running:
        assert not isinstance(running.process, ForkedProcess)
    assert suspended._process.wait(60) == -signal.SIGKILL  # so that it does not start that broker too


def test_a_broker_with_an_environment_too_large_for_a_message_starts_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(10):
        monkeypatch.setenv(f"LARGE_{number}", "x" * 100_000)
    with broker() as running:
        assert not isinstance(running.process, ForkedProcess)


def test_a_start_that_fails_leaves_no_descriptor_open() -> None:
    server = prepared_process()
    before = os.listdir("/proc/self/fd")
    with open(os.devnull, "rb") as null, pytest.raises(OSError, match="Message too long"):
        server.start_child(["--version"], null.fileno(), {"LARGE": "x" * 1_000_000})
    assert os.listdir("/proc/self/fd") == before


def test_an_empty_environment_is_that_of_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ODRADEK_BOOTSTRAP_SERVER", "no-address")
    with (
        open(os.devnull, "rb") as null,
        prepared_process().start_child(["topic", "list"], null.fileno(), {}) as process,
    ):
        assert process.stderr is not None
        assert "no-address" not in process.stderr.read()


def test_ctrl_c_in_the_block_of_a_fork_kills_it() -> None:
    with broker() as running:
        assert isinstance(running.process, ForkedProcess)
        with pytest.raises(KeyboardInterrupt), running.process:
            raise KeyboardInterrupt
        assert running.process.returncode == -signal.SIGKILL
