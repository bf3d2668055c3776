"""`odradek pipeline init`: every command of the README of a new project works on the first try."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from odradek.testing import RunningBroker

if TYPE_CHECKING:
    from pathlib import Path

    from tests.commands import Run

LIMIT_S = 240
OWN_BROKER = "odradek broker "


@pytest.fixture
def project(offline: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    ran = offline("pipeline", "init", "shop")
    assert ran.code == 0, ran.errors
    return tmp_path / "shop"


def commands(readme: str) -> list[str]:
    blocks = re.findall(r"```sh\n(.*?)```", readme, re.DOTALL)
    return [line for block in blocks for line in block.splitlines() if line]


def test_it_writes_a_project_with_the_name_throughout(project: Path) -> None:
    files = {path.name: path.read_text() for path in project.iterdir()}
    assert set(files) == {
        "README.md", "orders.jsonl", "pipeline.test.yml", "pipeline.yml", "simulator.yml", "view.yml"
    }  # fmt: skip
    assert not any("starter" in text for text in files.values())
    assert "pipeline: shop\n" in files["pipeline.yml"]


@pytest.mark.parametrize("name", ["../x", "a b", "", "-x"])
def test_a_name_that_no_pipeline_can_have_is_refused(
    offline: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    ran = offline("pipeline", "init", "--", name)
    assert ran.code == 1
    assert "cannot name a pipeline" in ran.errors
    assert not list(tmp_path.iterdir())


def test_it_overwrites_nothing(project: Path, offline: Run) -> None:
    ran = offline("pipeline", "init", "shop")
    assert ran.code == 1
    assert "shop exists" in ran.errors


@pytest.mark.spark
@pytest.mark.soak
@pytest.mark.timeout(600)
def test_every_command_of_its_readme_works(project: Path, tmp_path: Path) -> None:
    """With a broker of the test for the README's own, and a shorter `odradek up` on a free port."""
    found = commands((project / "README.md").read_text())
    assert [line.split()[1] for line in found] == [
        "pipeline", "pipeline", "up", "broker", "produce", "pipeline", "consume", "sql"
    ]  # fmt: skip
    outputs = {}
    with RunningBroker() as broker:
        environment = {**os.environ, "ODRADEK_BOOTSTRAP_SERVER": broker.bootstrap_servers}
        for line in found:
            if line.startswith(OWN_BROKER):
                continue
            command = line.replace("--seconds 60", "--seconds 3 --port 0 --format json")
            done = subprocess.run(
                [sys.executable, "-m", *shlex.split(command)],
                cwd=project, env=environment, capture_output=True, text=True, timeout=LIMIT_S, check=False,
            )  # fmt: skip
            assert done.returncode == 0, (line, done.stderr)
            outputs[line] = done.stdout
    assert "2 passed" in outputs[found[1]] or "2 cases" in outputs[found[1]]
    assert '"kind": "summary"' in outputs[found[2]].splitlines()[-1]
    large = outputs[found[6]]
    assert '"order_id":2' in large
    assert '"order_id":4' in large
    assert '"order_id":1,' not in large
    assert re.search(r"desk\D+2\D+800", outputs[found[7]])
