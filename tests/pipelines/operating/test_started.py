"""A pipeline as a process: started, inspected, restarted after Spark was killed, stopped; changed definitions."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
import time
import urllib.request
from typing import TYPE_CHECKING, Any

import psutil
import pytest

from odradek.pipelines.operating.processes import mark_of
from tests.commands import run_odradek

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from odradek.testing import RunningBroker
    from tests.commands import Ran

LIMIT_S = 200


class Scene:
    """A definition, with its own broker and state folder."""

    def __init__(self, folder: Path, bootstrap_servers: str) -> None:
        self.folder = folder
        self.bootstrap_servers = bootstrap_servers
        self.file = str(folder / "p.yml")
        self.define()
        self("topic", "create", "started-in", "--partitions", "2", "-b", bootstrap_servers)

    def define(self, by: str = "id") -> None:
        text = f"""
            pipeline: started
            bootstrap_servers: {self.bootstrap_servers}
            warehouse: sqlite:///w.db
            sources: {{readings: {{topic: started-in, schema: "id BIGINT, kind STRING"}}}}
            steps:
              good: {{sql: "select id, kind from readings", expect: {{positive: {{check: id > 0, otherwise: drop}}}}}}
            sinks: {{out: {{from: good, topic: started-out, key: id}}}}
            views: {{totals: {{from: good, by: [{by}], aggregate: {{events: count(*)}}}}}}
        """
        (self.folder / "p.yml").write_text(textwrap.dedent(text))

    def __call__(self, *arguments: str, code: int = 0, **rest: Any) -> Ran:
        ran = run_odradek(*arguments, timeout_s=LIMIT_S, XDG_STATE_HOME=str(self.folder / "state"), **rest)
        assert ran.code == code, (ran.output, ran.errors)
        return ran

    def produce(self, *ids: int) -> None:
        for number in ids:
            value = json.dumps({"id": number, "kind": "k"})
            self("produce", "started-in", "--value", value, "-b", self.bootstrap_servers)

    def status(self) -> dict[str, Any]:
        return self("pipeline", "status", "started", "--format", "json").row

    def await_status(self, is_so: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        give_up_at = time.monotonic() + LIMIT_S
        while not is_so(found := self.status()):
            assert time.monotonic() < give_up_at, found
            time.sleep(0.2)  # a poll's pause
        return found


def read_by(status: dict[str, Any], flow: str) -> int:
    return sum(sum(each["read"].values()) for each in status["flows"] if each["name"] == flow)


@pytest.fixture
def scene(tmp_path: Path, odradek_broker: RunningBroker) -> Iterator[Scene]:
    found = Scene(tmp_path, odradek_broker.bootstrap_servers)
    yield found
    run_odradek("pipeline", "stop", "--all", "--kill", XDG_STATE_HOME=str(tmp_path / "state"))


@pytest.mark.spark
@pytest.mark.timeout(600)
def test_a_pipeline_from_its_start_to_its_reset(scene: Scene) -> None:
    scene.produce(0, 1, 2)
    started = start(scene)
    assert started["state"] == "running"
    found = scene.await_status(lambda status: read_by(status, "readings") == 3 and read_by(status, "view-totals") == 3)
    assert [(each["name"], each["rows"]) for each in found["expectations"]] == [("positive", 1)]
    with urllib.request.urlopen(f"http://{found['metrics_address']}/metrics", timeout=60) as answer:
        assert 'read_records_total{pipeline="started",flow="readings",topic="started-in"} 3' in answer.read().decode()
    assert "started running" in scene("pipeline", "watch", "started", "--seconds", "0.1").output
    again = scene("pipeline", "start", scene.file, code=1)
    assert f"running already (pid {found['pid']})" in again.errors

    # Spark's process is killed: the pipeline is restarted and continues.
    children = psutil.Process(found["pid"]).children(recursive=True)
    next(each for each in children if "java" in each.name()).kill()
    scene.produce(3)
    found = scene.await_status(lambda status: status["restarts"] == 1 and read_by(status, "readings") == 4)
    assert "Spark" in found["last_error"]
    assert "retrying in" in scene("pipeline", "logs", "started", "-n", "100").output
    assert "started stopped" in scene("pipeline", "stop", "started").output
    assert scene.status()["state"] == "stopped"
    assert not mark_of(found["pid"]).began

    # The checkpoint is not compatible with another key; a reset sets the start.
    shown = scene("pipeline", "checkpoints", scene.file, "--format", "json")
    assert {row["flow"]: sum(row["positions"]["started-in"].values()) for row in shown.rows} == {
        "readings": 4, "view-totals": 4,
    }  # fmt: skip
    scene.define(by="kind")
    refused = scene("pipeline", "start", scene.file, code=1)
    assert "view totals: aggregate by id" in refused.errors
    assert "odradek pipeline reset" in refused.errors
    assert scene.status()["state"] == "failed"
    unsure = scene("pipeline", "reset", scene.file, code=1)
    assert "nothing was changed" in unsure.errors
    assert "topic started-out: replayed records are written again" in unsure.errors
    scene("pipeline", "reset", scene.file, "--to", "latest", "--yes")
    assert "flow readings begins at latest" in scene("pipeline", "checkpoints", scene.file).output


def start(scene: Scene) -> dict[str, Any]:
    return scene("pipeline", "start", scene.file, "--metrics-port", "0", "--format", "json").row


def test_one_that_cannot_run_says_why_and_leaves_nothing_behind(tmp_path: Path) -> None:
    file = tmp_path / "p.yml"
    file.write_text(
        'pipeline: away\nbootstrap_servers: 127.0.0.1:1\nsources: {a: {topic: a, schema: "id INT"}}\n'
        "sinks: {b: {from: a, topic: b}}\n"
    )
    home: Any = {"XDG_STATE_HOME": str(tmp_path)}
    batch = run_odradek("pipeline", "start", str(file), "--engine", "batch", **home)
    assert "away is a batch, which ends by itself" in batch.errors
    ran = run_odradek("pipeline", "start", str(file), **home)
    assert ran.code == 1
    assert "away does not run: no broker answers at 127.0.0.1:1" in ran.errors
    shown = run_odradek("pipeline", "status", "--format", "json", **home).row
    assert shown["state"] == "failed"
    assert not mark_of(shown["pid"]).began
    assert run_odradek("pipeline", "stop", "away", **home).code == 0
    other = run_odradek("pipeline", "logs", "other", **home)
    assert "no pipeline other was started on this machine; started: away" in other.errors


def test_a_status_that_cannot_be_read_is_reported(tmp_path: Path) -> None:
    folder = tmp_path / "odradek" / "pipelines" / "odd"
    folder.mkdir(parents=True)
    (folder / "status.json").write_text("{")
    ran = run_odradek("pipeline", "watch", "odd", XDG_STATE_HOME=str(tmp_path))
    assert ran.code == 1
    assert "the status of odd cannot be read" in ran.errors


def test_what_does_not_need_spark_does_not_import_it(tmp_path: Path) -> None:
    script = (
        "import sys; from odradek.cli.main import run; run(['pipeline', 'status']);"
        "print(sorted({'pyspark', 'pandas', 'sqlglot', 'confluent_kafka', 'rich'} & set(sys.modules)))"
    )
    own = {**os.environ, "XDG_STATE_HOME": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, env=own)
    assert done.stdout.splitlines()[-1] == "[]"
