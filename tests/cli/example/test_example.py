"""`odradek example`: a simulator that sends, and a live view that follows what is made of the records."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from odradek.examples.folders import copy_example, find_example
from odradek.testing import RunningBroker
from tests.commands import run_odradek
from tests.examples.rigs.stand_in import StandIn

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.commands import Run


def test_it_sends_for_the_time_asked(odradek: Run, new_name: Callable[[], str]) -> None:
    topic = new_name()
    options = ("--rate", "200", "--seconds", "2", "--malformed", "0.1", "--late", "0.1")
    ran = odradek("example", "simulate", "rigs", "--topic", topic, *options, "--format", "json")
    assert ran.code == 0, ran.errors
    *progress, summary = ran.rows
    assert [row["kind"] for row in progress] == ["progress"] * len(progress) != []
    assert summary["kind"] == "summary"
    assert 300 <= summary["sent"] == summary["acknowledged"] <= 401
    assert summary["late"] > 0
    assert sum(summary["malformed"].values()) > 0


def test_the_same_seed_and_start_send_the_same_records(odradek: Run, new_name: Callable[[], str]) -> None:
    written = []
    for _ in range(2):
        topic = new_name()
        assert odradek("topic", "create", topic, "--partitions", "1").code == 0
        options = (
            "--seed",
            "3",
            "--start",
            "2015-01-01T00:00Z",
            "--rate",
            "100",
            "--seconds",
            "0.5",
            "--malformed",
            "0",
        )
        assert odradek("example", "simulate", "rigs", "--topic", topic, *options).code == 0
        written.append(odradek("consume", topic, "--from-beginning", "--until-end").output.splitlines()[:30])
    assert written[0] == written[1]
    assert '"timestamp":"2015-01-01 00:00:00"' in written[0][0]


def test_plain_lines_and_a_summary(odradek: Run, new_name: Callable[[], str]) -> None:
    topic = new_name()
    ran = odradek("example", "simulate", "rigs", "--topic", topic, "--rate", "50", "--seconds", "1.5")
    assert ran.code == 0, ran.errors
    *lines, first, second = ran.output.splitlines()
    assert all(" sent " in line for line in lines)
    assert f"sent to {topic}" in first
    assert "acknowledged" in second


def test_shares_above_one_are_wrong_usage(offline: Run) -> None:
    ran = offline("example", "simulate", "rigs", "--late", "0.6", "--malformed", "0.6")
    assert ran.code == 2
    assert "are more than 1 in all" in ran.errors


def test_no_broker_is_reported_at_once(offline: Run) -> None:
    for name in ("simulate", "watch"):
        ran = offline("example", name)
        assert ran.code == 1
        assert "no broker answers" in ran.errors


def test_ctrl_c_ends_it_with_a_summary(bootstrap_server: str, new_name: Callable[[], str]) -> None:
    command = [sys.executable, "-m", "odradek", "example", "simulate", "-b", bootstrap_server, "--topic", new_name()]
    with subprocess.Popen([*command, "--format", "json"], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert json.loads(process.stdout.readline())["kind"] == "progress"
        os.kill(process.pid, signal.SIGINT)
        output, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    summary = json.loads(output.splitlines()[-1])
    assert summary["kind"] == "summary"
    assert summary["acknowledged"] == summary["sent"] > 0


def test_the_live_view_sees_what_a_pipeline_makes_of_the_records() -> None:
    """On a broker of its own: the pipeline's topics have fixed names. They appear while it watches."""
    with RunningBroker({"num.partitions": 3}) as running:
        address = running.bootstrap_servers
        command = [sys.executable, "-m", "odradek", "example", "watch", "rigs", "-b", address, "--format", "json"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as watching:
            assert watching.stdout is not None
            assert json.loads(watching.stdout.readline())["kind"] == "ready"
            json.loads(watching.stdout.readline())
            assert run_odradek("topic", "create", "rigs", "--partitions", "3", "-b", address).code == 0
            with StandIn(address):
                options = ("--rate", "300", "--seconds", "4", "--malformed", "0.05", "--format", "json")
                sent = run_odradek("example", "simulate", "rigs", "-b", address, *options)
                assert sent.code == 0, sent.errors
                acknowledged = sent.rows[-1]["acknowledged"]
                for line in watching.stdout:
                    row = json.loads(line)
                    done = row["records"]["pressure"] + row["records"]["rigs-dead-letters"]
                    if done == acknowledged and not row["lag"]:
                        break
            assert sum(row["states"].values()) > 200
            assert row["latency_ms"]["p50"] > 0
            os.kill(watching.pid, signal.SIGINT)
            output, _ = watching.communicate(timeout=60)
        assert watching.returncode == 0
    summary, figures = json.loads(output.splitlines()[-1]), sent.rows[-1]
    broken = sum(figures["malformed"].values())
    assert summary["kind"] == "summary"
    assert summary["records"]["rigs"] == figures["acknowledged"]
    assert summary["records"]["pressure"] == summary["records"]["temperature"] == figures["acknowledged"] - broken
    assert sum(summary["counts"]["dead letters"].values()) == summary["records"]["rigs-dead-letters"] == broken
    assert summary["counts"]["latest warnings"]
    assert summary["lag"] == 0


@pytest.fixture
def quiet(tmp_path: Path, new_name: Callable[[], str]) -> tuple[str, str]:
    """A folder of an example whose topics do not exist, and the name of its input."""
    folder, name = tmp_path / "quiet", new_name()
    copy_example(find_example("starter"), folder, {"starter": name})
    return str(folder), f"{name}-orders"


@pytest.mark.parametrize("name", ["watch", "simulate"])
def test_on_a_terminal_it_stays_in_place_and_ends_with_a_summary(
    name: str, bootstrap_server: str, quiet: tuple[str, str]
) -> None:
    ours, theirs = os.openpty()
    folder, topic = quiet
    command = [sys.executable, "-m", "odradek", "example", name, folder, "-b", bootstrap_server, "--seconds", "2.5"]
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
        assert "large orders" in text
        assert "Ctrl-C" in text
        assert text.index("\x1b[?1049h") < text.index("\x1b[?1049l") < text.index(f"all since the start: {topic} 0")
    else:
        assert "\r\x1b[K" in text
        assert f"sent to {topic}" in text


def test_the_live_view_prints_lines_without_a_terminal(odradek: Run, quiet: tuple[str, str]) -> None:
    folder, topic = quiet
    ran = odradek("example", "watch", folder, "--seconds", "1.5")
    assert ran.code == 0, ran.errors
    first, *_, summary, revenue = ran.output.splitlines()
    assert first.startswith(f"watching {topic},")
    assert summary.startswith(f"records in 0:01, all since the start: {topic} 0")
    assert revenue == "large orders, revenue 0"


def test_the_examples_of_the_package_are_listed(offline: Run) -> None:
    rows = offline("example", "list", "--format", "json").rows
    assert [row["name"] for row in rows] == ["rigs", "starter"]
    assert all(row["summary"] for row in rows)
    assert "Three hundred pumps" in offline("example", "list").output


def test_a_copy_has_all_files_and_does_not_overwrite(offline: Run, tmp_path: Path) -> None:
    target = str(tmp_path / "wells")
    ran = offline("example", "copy", "rigs", target, "--format", "json")
    assert ran.code == 0, ran.errors
    assert ran.row["files"] == [
        "README.md", "pipeline-realtime.yml", "pipeline.test.yml", "pipeline.yml", "rules.py", "simulator.yml",
        "view.yml",
    ]  # fmt: skip
    again = offline("example", "copy", "rigs", target)
    assert again.code == 1
    assert "exists and is not empty" in again.errors


def test_an_unknown_example_and_an_incomplete_folder_are_reported(offline: Run, tmp_path: Path) -> None:
    assert "there is no example 'rig' and no such folder; examples: rigs, starter" in offline("up", "rig").errors
    assert "has no pipeline.yml and no simulator.yml and no view.yml" in offline("up", str(tmp_path)).errors


def test_a_mistake_in_a_file_of_an_example_has_its_place(offline: Run, quiet: tuple[str, str]) -> None:
    folder, _topic = quiet
    file = Path(folder) / "simulator.yml"
    file.write_text(file.read_text().replace("rate: 50", "rte: 50"))
    ran = offline("example", "simulate", folder)
    assert ran.code == 1
    assert f"{file}:4:1: unknown key 'rte' of the simulator; did you mean 'rate'?" in ran.errors
