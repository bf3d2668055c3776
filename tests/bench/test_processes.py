"""CPU time, memory and files of a process."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from bench.processes import (
    children_resident_mb,
    cpu_seconds,
    disk_usage_bytes,
    is_alive,
    open_files,
    raise_open_files_limit,
    resident_mb,
)


def test_cpu_of_a_child_counts() -> None:
    before = cpu_seconds(os.getpid())
    work = "import time\nwhile time.process_time() < 0.2: pass"
    subprocess.run([sys.executable, "-c", work], check=True)
    assert cpu_seconds(os.getpid()) - before >= 0.15


@pytest.mark.skipif(sys.platform != "linux", reason="other systems count CPU time in ticks of 10 ms")
def test_cpu_of_another_process_is_finer_than_a_tick() -> None:
    code = "import sys, time\nprint(time.process_time_ns(), flush=True)\nsys.stdin.read()"
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stdin is not None
        reported_s = int(child.stdout.readline()) / 1e9
        assert reported_s <= cpu_seconds(child.pid) < reported_s + 0.005
        child.stdin.close()


def test_memory_is_in_decimal_megabytes() -> None:
    assert 5 < resident_mb(os.getpid()) < 5_000


def test_memory_of_children_is_counted_separately() -> None:
    with subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE) as child:
        assert children_resident_mb(os.getpid()) > 1
        assert children_resident_mb(child.pid) == 0


def test_open_files_are_counted(tmp_path: Path) -> None:
    before = open_files(os.getpid())
    with (tmp_path / "one").open("w"), (tmp_path / "two").open("w"):
        assert open_files(os.getpid()) == before + 2


def test_ended_process_is_not_alive_even_before_it_is_reaped() -> None:
    process = subprocess.Popen([sys.executable, "-c", ""], stdout=subprocess.PIPE)
    assert process.stdout is not None
    with process:
        assert process.stdout.read() == b""
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert not is_alive(process.pid)
    assert not is_alive(process.pid)
    assert is_alive(os.getpid())


def test_sparse_files_cost_only_their_blocks(tmp_path: Path) -> None:
    (tmp_path / "log").mkdir()
    (tmp_path / "log" / "data").write_bytes(os.urandom(1_000_000))
    with (tmp_path / "log" / "index").open("wb") as sparse:
        sparse.truncate(100_000_000)
    assert 900_000 < disk_usage_bytes(tmp_path) < 3_000_000


def test_limit_on_open_files_is_at_least_the_requested_one() -> None:
    assert raise_open_files_limit(64) >= 64
