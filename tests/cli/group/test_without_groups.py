"""What speaks of no group needs none: it works on a broker that does not know the requests of groups at all."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import pytest

from odradek.testing import RunningBroker
from tests.commands import run_odradek

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.commands import Run

PROGRAM = """
import sys
from odradek.handlers import registry

GROUPS = ("Group", "Offset", "Coordinator", "Heartbeat")
known = registry.build_registry
registry.build_registry = lambda: {
    key: api for key, api in known().items()
    if api.name in {"ListOffsets", "OffsetForLeaderEpoch"} or not any(word in api.name for word in GROUPS)
}
from odradek.cli.main import run
sys.exit(run(sys.argv[1:]))
"""


class BrokerWithoutGroups(RunningBroker):
    def _command(self) -> list[str]:
        python, _module, _odradek, *arguments = super()._command()
        return [python, "-c", PROGRAM, *arguments]


@pytest.fixture(scope="module")
def groupless() -> Iterator[Run]:
    with BrokerWithoutGroups() as running:
        yield functools.partial(run_odradek, ODRADEK_BOOTSTRAP_SERVER=running.bootstrap_servers)


def test_topics_are_written_and_read(groupless: Run) -> None:
    assert groupless("topic", "create", "pump", "-p", "2").code == 0
    assert groupless("produce", "pump", "-v", "1", "-v", "2").code == 0
    ran = groupless("consume", "pump", "--until-end")
    assert (ran.code, sorted(ran.output.split()), ran.errors) == (0, ["1", "2"], "")
    waited = groupless("consume", "pump", "--from-beginning", "--timeout", "1s")
    assert (waited.code, sorted(waited.output.split()), waited.errors) == (0, ["1", "2"], "")
    assert groupless("topic", "describe", "pump").code == 0


def test_benches_run(groupless: Run) -> None:
    assert groupless("bench", "produce", "-n", "100").code == 0
    assert groupless("bench", "consume").code == 0
    assert groupless("bench", "latency", "--duration", "200ms").code == 0


def test_groups_themselves_are_refused_in_a_line(groupless: Run) -> None:
    ran = groupless("group", "list")
    assert ran.code == 1
    assert "a bug in odradek" not in ran.errors
    assert ran.errors.count("\n") == 1
