"""`odradek demo`: a broker, a stream and a consumer that start, run and end together."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
from typing import TYPE_CHECKING, Any, Never, cast

import pytest

from odradek.admin.errors import NoSuchTopic
from odradek.cli.demo.broker_demo import topic_exists
from odradek.conventions.failures import Failure
from tests.commands import run_odradek

if TYPE_CHECKING:
    from pathlib import Path

    from odradek.admin.cluster import Cluster
    from tests.commands import Run


def test_it_streams_for_the_time_asked_and_loses_nothing(offline: Run) -> None:
    ran = offline("demo", "--port", "0", "--seconds", "2", "--rate", "100", "--format", "json")
    assert ran.code == 0, ran.errors
    ready, *_, summary = ran.rows
    assert (ready["kind"], ready["topic"], summary["kind"]) == ("ready", "rigs", "summary")
    assert summary["produced"] == summary["consumed"] > 50
    assert summary["latency_ms"]["p50"] > 0


@pytest.mark.more
def test_plain_lines_where_there_is_no_terminal(offline: Run) -> None:
    ran = offline("demo", "--port", "0", "--seconds", "2")
    assert ran.code == 0, ran.errors
    first, *lines, summary, latency, last = ran.output.splitlines()
    assert first.startswith("broker on 127.0.0.1:")
    assert latency.startswith("end-to-end latency: p50 ")
    shown = [line for line in lines if "waiting for the first record" not in line]
    assert shown
    assert all('"sensor_readings"' in line for line in shown)
    assert " produced, " in summary
    assert last == "all records were consumed; the broker has stopped"


def test_a_port_that_is_taken_is_reported_with_another(offline: Run) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        ran = offline("demo", "--port", str(port))
    assert (ran.code, ran.output) == (1, "")
    assert f"127.0.0.1:{port}" in ran.errors
    assert f"odradek demo --port {port + 100 if port < 65436 else 0}\n" in ran.errors


@pytest.mark.more
def test_data_is_kept_where_asked_and_found_again(offline: Run, tmp_path: Path) -> None:
    where = ("--port", "0", "--data-dir", str(tmp_path / "kept"), "--seconds", "1", "--format", "json")
    for _ in range(2):
        ran = offline("demo", *where)
        assert ran.code == 0, ran.errors
        assert ran.rows[-1]["consumed"] == ran.rows[-1]["produced"]
    assert (tmp_path / "kept" / "rigs-0").is_dir()


class RunningDemo(subprocess.Popen[str]):
    def __init__(self, *options: str) -> None:
        command = [sys.executable, "-m", "odradek", "demo", "--port", "0", "--format", "json", *options]
        super().__init__(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.address: str = self.next_row()["bootstrap_servers"]

    def next_row(self) -> dict[str, Any]:
        assert self.stdout is not None
        row: dict[str, Any] = json.loads(self.stdout.readline())
        return row

    def summary_after_ctrl_c(self) -> dict[str, Any]:
        self.send_signal(signal.SIGINT)
        output, _ = self.communicate(timeout=60)
        assert self.returncode == 0
        summary: dict[str, Any] = json.loads(output.splitlines()[-1])
        assert summary["kind"] == "summary"
        assert summary["produced"] == summary["consumed"]
        return summary


def test_ctrl_c_is_a_good_end_and_leaves_no_broker() -> None:
    with RunningDemo() as demo:
        demo.next_row()
        demo.summary_after_ctrl_c()
        host, port = demo.address.split(":")
    with socket.socket() as probe:
        assert probe.connect_ex((host, int(port))) != 0


@pytest.mark.more
def test_records_of_others_are_shown_and_not_counted() -> None:
    with RunningDemo("--rate", "5") as demo:
        for arguments in (["-v", "hello"], ["-v", '{"a":1}'], ["-k", "k", "--null-value"]):
            ran = run_odradek("produce", "rigs", "-b", demo.address, *arguments)
            assert ran.code == 0, ran.errors
        while demo.next_row()["of_others"] < 3:
            pass
        assert demo.summary_after_ctrl_c()["of_others"] == 3


@pytest.mark.more
def test_a_deleted_topic_ends_it_with_a_line() -> None:
    with RunningDemo("--seconds", "60") as demo:
        demo.next_row()
        ran = run_odradek("topic", "delete", "rigs", "--yes", "-b", demo.address)
        assert ran.code == 0, ran.errors
        _, errors = demo.communicate(timeout=60)
    assert demo.returncode == 1
    assert errors.splitlines() == ["odradek: error: topic rigs was deleted; start the demo again to create it"]


@pytest.mark.parametrize(("failure", "expected"), [(NoSuchTopic("gone"), False), (Failure("no answer in time"), True)])
def test_only_a_deleted_topic_counts_as_deleted(failure: Failure, expected: bool) -> None:
    class Failing:
        def describe_topic(self, _: str) -> Never:
            raise failure

    assert topic_exists(cast("Cluster", Failing()), "AAAAAAAAAAAAAAAAAAAAAQ") is expected


def test_a_broker_that_does_not_start_is_reported_in_its_own_words(offline: Run) -> None:
    ran = offline("demo", "--port", "0", "--data-dir", "/proc/nowhere")
    assert ran.code == 1
    assert ran.errors.startswith("odradek: error: the broker did not start: /proc/nowhere")
