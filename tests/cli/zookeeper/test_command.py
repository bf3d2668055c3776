"""`odradek zookeeper` runs a real server, and says what it lacks."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from odradek.conventions.failures import Failure
from odradek.local import zookeeper

if TYPE_CHECKING:
    from pathlib import Path

WAIT_S = 60


@pytest.fixture(autouse=True)
def java() -> None:
    if shutil.which("java") is None:
        pytest.skip("needs Java, 11 or newer, on the PATH")


def start(*arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "odradek", "zookeeper", *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_it_runs_until_a_signal_and_keeps_its_port(tmp_path: Path) -> None:
    with start("--port", "0", "--data-dir", str(tmp_path / "first"), "--format", "json") as process:
        assert process.stdout is not None
        facts = json.loads(process.stdout.readline())
        assert facts["event"] == "ready"
        assert facts["data_dir"] == str(tmp_path / "first")
        assert zookeeper.answers(facts["host"], facts["port"])
        with start("--port", str(facts["port"]), "--data-dir", str(tmp_path / "second")) as second:
            output, errors = second.communicate(timeout=WAIT_S)
        assert (second.returncode, output) == (1, "")
        assert f"127.0.0.1:{facts['port']}" in errors
        assert "--port" in errors
        process.send_signal(signal.SIGINT)
        assert process.wait(WAIT_S) == 130
        assert not zookeeper.answers(facts["host"], facts["port"])


def test_jars_of_another_directory_are_used(tmp_path: Path) -> None:
    for name in zookeeper.NEEDED:
        (tmp_path / f"{name}-9.9.9.jar").touch()
    (tmp_path / "zookeeper-prometheus-metrics-9.9.9.jar").touch()
    found = zookeeper.find_jars(str(tmp_path))
    assert [jar.rpartition("/")[2] for jar in found] == [f"{name}-9.9.9.jar" for name in zookeeper.NEEDED]
    assert zookeeper.zookeeper_version(found) == "9.9.9"


def test_missing_jars_are_named_with_the_ways_to_get_them(tmp_path: Path) -> None:
    with pytest.raises(Failure, match=r"no jar of zookeeper, .*odradek\[pipelines\].*Maven Central.*--jars"):
        zookeeper.find_jars(str(tmp_path))
