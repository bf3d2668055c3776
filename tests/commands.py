"""What the tests of the command line share: the command as a process, a broker, topics of one's own.

They run on a broker of ours, or, to show that the command line needs nothing of ours, on any cluster:
TEST_BOOTSTRAP_SERVER=host:port pytest tests/cli
"""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from tests.forks.client import fork_server


@dataclass(frozen=True)
class Ran:
    """What a command did."""

    code: int
    output: str
    errors: str

    @property
    def rows(self) -> list[dict[str, Any]]:
        """JSON lines."""
        return [json.loads(line) for line in self.output.splitlines()]

    @property
    def row(self) -> dict[str, Any]:
        (row,) = self.rows
        return row


Run = Callable[..., Ran]


@pytest.fixture(scope="session")
def bootstrap_server(request: pytest.FixtureRequest) -> str:
    given = os.environ.get("TEST_BOOTSTRAP_SERVER")
    if given:
        return given
    address: str = request.getfixturevalue("odradek_session_broker").bootstrap_servers
    return address


def run_odradek(*arguments: str, stdin: str | bytes = "", timeout_s: float = 60, **environment: str) -> Ran:
    """`odradek …` in a process of its own; must succeed or fail without a traceback."""
    given = stdin.encode() if isinstance(stdin, str) else stdin
    variables = {**os.environ, "COLUMNS": "100", **environment}
    done = fork_server().run(arguments, variables, given, timeout_s)
    ran = Ran(done.returncode, done.stdout.decode(), done.stderr.decode())
    assert "Traceback" not in ran.errors, ran.errors
    return ran


@pytest.fixture
def offline() -> Run:
    """The command where no broker is needed; it finds none at its default address either."""
    return lambda *arguments, **rest: run_odradek(*arguments, **{"ODRADEK_BOOTSTRAP_SERVER": "127.0.0.1:1", **rest})


@pytest.fixture
def odradek(bootstrap_server: str) -> Run:
    """The command with the address of the broker."""
    return lambda *arguments, **rest: run_odradek(*arguments, **{"ODRADEK_BOOTSTRAP_SERVER": bootstrap_server, **rest})


@pytest.fixture
def new_name() -> Callable[[], str]:
    """Names of topics that no other test uses."""
    return lambda: f"t-{uuid.uuid4().hex[:12]}"


@pytest.fixture
def topic(odradek: Run, new_name: Callable[[], str]) -> str:
    """A topic with two partitions."""
    name = new_name()
    created = odradek("topic", "create", name, "--partitions", "2")
    assert created.code == 0, created.errors
    return name
