"""`odradek rigs`: a fleet that sends, and a dashboard that follows what is made of it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from odradek.testing import RunningBroker
from tests.cli.conftest import run_odradek
from tests.pipelines.rigs.stand_in import StandIn

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.cli.conftest import Run


def test_it_sends_for_the_time_asked(odradek: Run, new_name: Callable[[], str]) -> None:
    topic = new_name()
    options = ("--rate", "200", "--seconds", "2", "--broken", "0.1", "--late", "0.1")
    ran = odradek("rigs", "simulate", "--topic", topic, *options, "--format", "json")
    assert ran.code == 0, ran.errors
    *progress, summary = ran.rows
    assert [row["kind"] for row in progress] == ["progress"] * len(progress) != []
    assert summary["kind"] == "summary"
    assert 300 <= summary["sent"] == summary["acknowledged"] <= 401
    assert summary["late"] > 0
    assert sum(summary["broken"].values()) > 0


def test_the_same_seed_and_start_send_the_same_records(odradek: Run, new_name: Callable[[], str]) -> None:
    written = []
    for _ in range(2):
        topic = new_name()
        assert odradek("topic", "create", topic, "--partitions", "1").code == 0
        options = ("--seed", "3", "--start", "2015-01-01T00:00Z", "--rate", "100", "--seconds", "0.5", "--broken", "0")
        assert odradek("rigs", "simulate", "--topic", topic, *options).code == 0
        written.append(odradek("consume", topic, "--from-beginning", "--until-end").output.splitlines()[:30])
    assert written[0] == written[1]
    assert '"timestamp":"2015-01-01 00:00:00"' in written[0][0]


def test_plain_lines_and_a_summary(odradek: Run, new_name: Callable[[], str]) -> None:
    topic = new_name()
    ran = odradek("rigs", "simulate", "--topic", topic, "--rate", "50", "--seconds", "1.5")
    assert ran.code == 0, ran.errors
    *lines, first, second = ran.output.splitlines()
    assert all(" sent " in line for line in lines)
    assert f"sent to {topic}" in first
    assert "acknowledged" in second


def test_shares_above_one_are_wrong_usage(offline: Run) -> None:
    ran = offline("rigs", "simulate", "--late", "0.6", "--broken", "0.6")
    assert ran.code == 2
    assert "--late and --broken" in ran.errors


def test_no_broker_is_told_at_once(offline: Run) -> None:
    for name in ("simulate", "watch"):
        ran = offline("rigs", name)
        assert ran.code == 1
        assert "no broker answers" in ran.errors


def test_ctrl_c_ends_it_with_a_summary(bootstrap_server: str, new_name: Callable[[], str]) -> None:
    command = [sys.executable, "-m", "odradek", "rigs", "simulate", "-b", bootstrap_server, "--topic", new_name()]
    with subprocess.Popen([*command, "--format", "json"], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert json.loads(process.stdout.readline())["kind"] == "progress"
        os.kill(process.pid, signal.SIGINT)
        output, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    summary = json.loads(output.splitlines()[-1])
    assert summary["kind"] == "summary"
    assert summary["acknowledged"] == summary["sent"] > 0


def test_the_dashboard_sees_what_a_pipeline_makes_of_the_records() -> None:
    """On a broker of its own: the pipeline's topics have fixed names. They appear while the dashboard watches."""
    with RunningBroker({"num.partitions": 3}) as running:
        address = running.bootstrap_servers
        command = [sys.executable, "-m", "odradek", "rigs", "watch", "-b", address, "--format", "json"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as watching:
            assert watching.stdout is not None
            assert json.loads(watching.stdout.readline())["kind"] == "ready"
            json.loads(watching.stdout.readline())
            assert run_odradek("topic", "create", "rigs", "--partitions", "3", "-b", address).code == 0
            with StandIn(address):
                options = ("--rate", "300", "--seconds", "4", "--broken", "0.05", "--format", "json")
                sent = run_odradek("rigs", "simulate", "-b", address, *options)
                assert sent.code == 0, sent.errors
                acknowledged = sent.rows[-1]["acknowledged"]
                for line in watching.stdout:
                    row = json.loads(line)
                    done = row["records"]["pressure"] + row["records"]["rigs-dead-letters"]
                    if done == acknowledged and not row["lag"]:
                        break
            assert sum(row["pumps"].values()) > 200
            assert row["latency_ms"]["p50"] > 0
            os.kill(watching.pid, signal.SIGINT)
            output, _ = watching.communicate(timeout=60)
        assert watching.returncode == 0
    summary, figures = json.loads(output.splitlines()[-1]), sent.rows[-1]
    broken = sum(figures["broken"].values())
    assert summary["kind"] == "summary"
    assert summary["records"]["rigs"] == figures["acknowledged"]
    assert summary["records"]["pressure"] == summary["records"]["temperature"] == figures["acknowledged"] - broken
    assert sum(summary["dead_letters"].values()) == summary["records"]["rigs-dead-letters"] == broken
    assert summary["warnings"]
    assert summary["lag"] == 0


@pytest.mark.parametrize("name", ["watch", "simulate"])
def test_on_a_terminal_it_stays_in_place_and_ends_with_a_summary(
    name: str, bootstrap_server: str, new_name: Callable[[], str]
) -> None:
    ours, theirs = os.openpty()
    topic = ["--source" if name == "watch" else "--topic", new_name()]
    command = [sys.executable, "-m", "odradek", "rigs", name, "-b", bootstrap_server, "--seconds", "2.5", *topic]
    environment = {**os.environ, "COLUMNS": "80", "LINES": "24", "TERM": "xterm-256color"}
    with subprocess.Popen(command, stdout=theirs, stderr=theirs, stdin=theirs, env=environment) as process:
        os.close(theirs)
        shown = b""
        with suppress(OSError):  # Linux: the other end is closed
            while piece := os.read(ours, 65536):
                shown += piece
    os.close(ours)
    assert process.returncode == 0, shown
    text = shown.decode()
    if name == "watch":
        assert "latest warnings" in text
        assert text.index("\x1b[?1049h") < text.index("\x1b[?1049l") < text.index("0 records in")
    else:
        assert "\r\x1b[K" in text
        assert f"sent to {topic[1]}" in text


def test_the_dashboard_prints_lines_without_a_terminal(odradek: Run) -> None:
    ran = odradek("rigs", "watch", "--seconds", "1.5", "--source", "nowhere", "--dead-letters", "nowhere-letters")
    assert ran.code == 0, ran.errors
    first, *_, summary, lag = ran.output.splitlines()
    assert first.startswith("watching nowhere, pressure,")
    assert summary.startswith("0 records in nowhere in 0:01")
    assert lag.startswith("lag 0")
