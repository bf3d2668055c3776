"""`odradek partition move` on a real broker with two log directories."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from odradek.admin.partitions.copies import Copy
from odradek.cli.partition.move import plan_moves, question
from odradek.testing import RunningBroker
from tests.commands import run_odradek

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("directory", "moved", "cancelled", "text"),
    [
        ("/one", [], [("/two", 0)], "Cancel 1 move?"),
        ("/two", [("/one", 0), ("/one", 1)], [], "Move 2 replicas?"),
        ("/three", [("/one", 0), ("/one", 1)], [], "Move 2 replicas?"),
    ],
)
def test_a_move_to_the_own_directory_cancels(
    directory: str, moved: list[tuple[str, int]], cancelled: list[tuple[str, int]], text: str
) -> None:
    copies = [Copy("pump", 0, "/one", 9, False), Copy("pump", 1, "/one", 9, False), Copy("pump", 0, "/two", 1, True)]
    plan = plan_moves(copies, directory)
    assert [[(each.path, each.partition) for each in part] for part in plan] == [moved, cancelled]
    assert question(*plan) == text


def test_replicas_move_to_another_log_directory(tmp_path: Path) -> None:
    one, two = str(tmp_path / "one"), str(tmp_path / "two")
    broker = RunningBroker({"log.dirs": f"{one},{two}"}, data_directory=one)
    try:
        broker.start()
        server = ("--bootstrap-server", broker.bootstrap_servers)
        assert run_odradek("topic", "create", "pump", "--partitions", "2", *server).code == 0
        wrong = run_odradek("partition", "move", "pump", "--broker", "0", "--directory", "/none", "--yes", *server)
        assert (wrong.code, "has no log directory /none" in wrong.errors) == (1, True)
        command = ("partition", "move", "pump", "--broker", "0", "--directory", two, "--yes")
        alone = run_odradek(*command, "--timeout", "5", *server)
        assert (alone.code, "--timeout is the longest wait of --wait" in alone.errors) == (1, True)
        done = run_odradek(*command, "--wait", "--timeout", "30", "--format", "json", *server)
        assert done.code == 0, done.errors
        assert [(each["from"], each["to"]) for each in json.loads(done.output)["replicas"]] == [(one, two)]
        assert json.loads(done.output)["cancelled"] == []
        again = run_odradek(*command, *server)
        assert "nothing to move" in again.output
    finally:
        broker.close()
