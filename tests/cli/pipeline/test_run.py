"""`odradek pipeline run` and `odradek up`: from the command line to records, and the message when that fails."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import textwrap
from typing import TYPE_CHECKING

import pytest

from odradek.cli.pipeline.options import overridden
from odradek.pipelines.definition.model import Pipeline
from tests.cli.conftest import run_odradek

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Run

LIMIT_S = 110


def definition(folder: Path, topic: str, sql: str = "select id from readings") -> str:
    file = folder / "p.yml"
    file.write_text(
        textwrap.dedent(f"""
        pipeline: p
        checkpoints: checkpoints
        sources: {{readings: {{topic: {topic}, schema: "id BIGINT"}}}}
        steps:
          good: {{sql: "{sql}"}}
        sinks: {{out: {{from: good, topic: {topic}-out, key: id}}}}
        """)
    )
    return str(file)


def test_an_unsound_definition_does_not_start(offline: Run, tmp_path: Path) -> None:
    ran = offline("pipeline", "run", definition(tmp_path, "t", "select nothing from readings"))
    assert ran.code == 1
    assert "p.yml:6:" in ran.errors
    assert "pipeline validate" in ran.errors


def test_no_broker_is_reported_before_spark_starts(offline: Run, tmp_path: Path) -> None:
    ran = offline("pipeline", "run", definition(tmp_path, "t"), "--bootstrap-server", "127.0.0.1:1")
    assert ran.code == 1
    assert "no broker answers at 127.0.0.1:1" in ran.errors
    assert "starting Spark" not in ran.errors


def test_a_batch_forgets_no_checkpoint(offline: Run, tmp_path: Path) -> None:
    """It is the stream's: to read a part of the log again is another command."""
    offsets = tmp_path / "checkpoints" / "readings" / "offsets"
    offsets.mkdir(parents=True)
    (offsets / "0").write_text("v1\n{}\n")
    file = definition(tmp_path, "t")
    ran = offline("pipeline", "run", file, "--engine", "batch", "--from", "earliest", "--yes")
    assert ran.code == 1
    assert f"odradek pipeline backfill {file} --from earliest" in ran.errors
    assert (offsets / "0").exists()


@pytest.mark.parametrize(
    ("given", "kept"),
    [("hdfs://host/checkpoints", "hdfs://host/checkpoints"), ("/some/folder", "/some/folder"), (None, "as defined")],
)
def test_a_folder_elsewhere_is_left_as_it_is_written(given: str | None, kept: str) -> None:
    assert overridden(Pipeline("p", checkpoints="as defined"), {"checkpoints": given}).checkpoints == kept


@pytest.mark.spark
def test_it_runs_until_it_has_caught_up(bootstrap_server: str, topic: str, tmp_path: Path) -> None:
    for number in range(3):
        value = json.dumps({"id": number})
        assert run_odradek("produce", topic, "--value", value, "-b", bootstrap_server).code == 0
    file = definition(tmp_path, topic)
    done = subprocess.run(
        [sys.executable, "-m", "odradek", "pipeline", "run", file, "--until-caught-up", "-b", bootstrap_server],
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "readings batch 0: 3 rows" in done.stdout
    assert "p runs: readings" in done.stderr
    assert "WARN" not in done.stderr
    read = run_odradek(
        "consume", f"{topic}-out", "--from-beginning", "-n", "3", "-b", bootstrap_server, "--format", "json"
    )
    assert sorted(row["key"] for row in read.rows) == ["0", "1", "2"]


@pytest.mark.spark
@pytest.mark.timeout(240)
def test_the_rigs_run_from_sensor_to_alert_and_stop_on_ctrl_c(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "odradek", "up", "--port", "0", "--rate", "200", "--format", "json"],
        cwd=tmp_path,  # the example is part of the package
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        for line in process.stdout:
            seen = json.loads(line)
            if seen["kind"] == "progress" and seen["records"]["pressure"] and seen["records"]["rigs-dead-letters"]:
                break
        process.send_signal(signal.SIGINT)
        rest, errors = process.communicate(timeout=LIMIT_S)
    finally:
        process.kill()
    assert process.returncode == 0, errors
    summary = json.loads(rest.splitlines()[-1])
    assert summary["kind"] == "summary"
    assert summary["counts"]["dead letters"]
    assert "no reason" not in summary["counts"]["dead letters"]


@pytest.mark.spark
@pytest.mark.timeout(300)
def test_the_rigs_run_on_three_brokers(tmp_path: Path) -> None:
    """ZooKeeper and the brokers are started before the pipeline, and stopped after it."""
    process = subprocess.Popen(
        [sys.executable, "-m", "odradek", "up", "--brokers", "3", "--port", "0", "--rate", "200", "--format", "json"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        for line in process.stdout:
            seen = json.loads(line)
            if seen["kind"] == "progress" and seen["records"]["pressure"]:
                break
        process.send_signal(signal.SIGINT)
        rest, errors = process.communicate(timeout=LIMIT_S)
    finally:
        process.kill()
    assert process.returncode == 0, errors
    assert json.loads(rest.splitlines()[-1])["kind"] == "summary"
