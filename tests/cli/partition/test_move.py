"""`odradek partition move` on a real broker with two log directories."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from odradek.testing import RunningBroker
from tests.cli.conftest import run_odradek

if TYPE_CHECKING:
    from pathlib import Path


def test_replicas_move_to_another_log_directory(tmp_path: Path) -> None:
    one, two = str(tmp_path / "one"), str(tmp_path / "two")
    broker = RunningBroker({"log.dirs": f"{one},{two}"}, data_directory=one)
    try:
        broker.start()
        server = ("--bootstrap-server", broker.bootstrap_servers)
        assert run_odradek("topic", "create", "pump", "--partitions", "2", *server).code == 0
        wrong = run_odradek("partition", "move", "pump", "--broker", "0", "--directory", "/none", "--yes", *server)
        assert (wrong.code, "has no log directory /none" in wrong.errors) == (1, True)
        command = (
            "partition",
            "move",
            "pump",
            "--broker",
            "0",
            "--directory",
            two,
            "--yes",
            "--wait",
            "--format",
            "json",
        )
        done = run_odradek(*command, *server)
        assert done.code == 0, done.errors
        assert [(each["from"], each["to"]) for each in json.loads(done.output)["replicas"]] == [(one, two)]
        again = run_odradek("partition", "move", "pump", "--broker", "0", "--directory", two, "--yes", *server)
        assert "nothing to move" in again.output
    finally:
        broker.close()
