"""The examples do what they say, run as a user runs them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from odradek.testing import RunningBroker

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "groups"
TELLS = {
    "at_most_once.py": [
        "a worker processes 1 2 3 4 and crashes",
        "a worker processes 6 7 8 9 10 and finishes",
        "lost: 5; processed twice: none",
    ],
    "at_least_once.py": [
        "a worker processes 1 2 3 4 5 and crashes",
        "a worker processes 5 6 7 8 9 10 and finishes",
        "lost: none; processed twice: 5",
    ],
    "commits.py": [
        "automatic: read 6, done with 4, committed 4",
        "by hand: read 6, committed 0",
        "by hand: the second message was committed: 2",
        "by hand: an offset was committed: 5",
        "by hand: all that was read was committed: 6",
    ],
    "commit_on_revoke.py": [
        "first gets [0, 1]",
        "first commits on revoke: [(0, 10), (1, 10)]",
        "first read 30, second read 10; each once: True",
    ],
    "seek.py": [
        "a new group begins with order 1",
        "from a point in time: order 4",
        "from the oldest: order 1",
        "from the end: order 7",
    ],
    "pattern.py": ["books: order 1", "music, which is new: order 2"],
}


def test_every_example_is_listed() -> None:
    scripts = {path.name for path in EXAMPLES.glob("*.py")} - {"stage.py"}
    assert scripts == set(TELLS)
    readme = (EXAMPLES / "README.md").read_text()
    assert all(f"[{name}]({name})" in readme for name in scripts)


@pytest.mark.parametrize("name", TELLS)
def test_without_a_broker_an_example_says_so_in_one_line(name: str) -> None:
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / name), "127.0.0.1:1"], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "no broker at 127.0.0.1:1 (Connection refused); start one with `odradek broker`\n"


@pytest.mark.parametrize("name", TELLS)
def test_an_example_shows_what_it_says(running: RunningBroker, name: str) -> None:
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / name), running.bootstrap_servers],
        env={**os.environ, "PYTHONPATH": ""},
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    said = done.stdout.splitlines()
    assert [line for line in said if line in TELLS[name]] == TELLS[name], done.stdout
