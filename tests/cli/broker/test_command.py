"""`odradek broker` as a process: its ready line, its end, its complaints."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from tests.commands import Run


def start(*arguments: str, **options: Any) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "odradek", "broker", *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)


def test_ready_line_and_a_clean_end_on_sigterm(tmp_path: Path) -> None:
    data = tmp_path / "data"
    process = start("--override", "listeners=PLAINTEXT://127.0.0.1:0", "--override", f"log.dirs={data}")
    with process:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line.startswith("odradek broker ")
        assert " is ready on 127.0.0.1:" in line
        assert re.search(rf"\(data in {re.escape(str(data))}; metrics on http://127\.0\.0\.1:\d+/metrics\)\n$", line)
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0


def test_a_port_without_a_listener(tmp_path: Path, offline: Run) -> None:
    with start("--port", "0", "--override", f"log.dirs={tmp_path / 'data'}") as process:
        assert process.stdout is not None
        assert re.search(r" is ready on 127\.0\.0\.1:\d+ ", process.stdout.readline())
        process.terminate()
        assert process.wait(60) == 0
    refused = offline("broker", "--port", "0", "--override", "listeners=SSL://:9092")
    assert refused.code == 2
    assert "--port is for a broker without a properties file, --secure and listeners" in refused.errors


def test_properties_come_from_a_file_and_overrides_win(tmp_path: Path, offline: Run) -> None:
    data = tmp_path / "data"
    properties = tmp_path / "server.properties"
    properties.write_text(f"listeners=PLAINTEXT://127.0.0.1:0\nlog.dirs={data}\nnum.partitions=2\n")
    with start(str(properties), "--override", "num.partitions=5") as process:
        assert process.stdout is not None
        address = process.stdout.readline().split(" is ready on ")[1].split(" ")[0]
        created = offline("topic", "create", "a", "--format", "json", ODRADEK_BOOTSTRAP_SERVER=address)
        process.terminate()
        process.wait(60)
    assert created.row["partitions"] == 5


def test_with_json_the_ready_line_and_the_logs_are_objects(tmp_path: Path) -> None:
    overrides = ("--override", "listeners=PLAINTEXT://127.0.0.1:0", "--override", f"log.dirs={tmp_path / 'data'}")
    with start("--format", "json", *overrides) as process:
        assert process.stdout is not None
        ready = json.loads(process.stdout.readline())
        process.terminate()
        _output, errors = process.communicate(timeout=60)
    assert all(json.loads(line)["event"] for line in errors.splitlines())
    (endpoint,) = ready.pop("endpoints")
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/metrics", ready.pop("metrics"))
    assert ready == {"event": "ready", "node_id": 0, "log_dirs": [str(tmp_path / "data")]}
    assert (endpoint["listener"], endpoint["host"]) == ("PLAINTEXT", "127.0.0.1")
    assert endpoint["port"] > 0


def test_a_missing_file_is_wrong_usage(offline: Run) -> None:
    ran = offline("broker", "missing.properties")
    assert ran.code == 2
    assert "missing.properties" in ran.errors


@pytest.mark.parametrize("options", [(), ("--format", "json")])
def test_an_unknown_setting_is_named_in_a_plain_line(offline: Run, options: tuple[str, ...]) -> None:
    ran = offline("broker", "--override", "no.such.setting=1", *options)
    assert ran.code == 1
    assert "no.such.setting" in ran.errors
    assert ran.errors.splitlines()[-1].startswith("odradek: error: ")


def test_the_broker_ends_when_the_pipe_does(tmp_path: Path) -> None:
    """`--stop-with`: the process that holds the other end has ended."""
    ours, theirs = os.pipe()[::-1]
    overrides = ("--override", "listeners=PLAINTEXT://127.0.0.1:0", "--override", f"log.dirs={tmp_path / 'data'}")
    with start(f"--stop-with={theirs}", *overrides, pass_fds=[theirs]) as process:
        os.close(theirs)
        assert process.stdout is not None
        assert "is ready" in process.stdout.readline()
        os.close(ours)
        assert process.wait(60) == 0
