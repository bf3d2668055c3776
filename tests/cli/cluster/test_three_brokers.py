"""Three brokers that `odradek broker --processes 3` runs, and the commands for a cluster on them."""

from __future__ import annotations

import json
import os
import queue
import shutil
import signal
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

from odradek.testing import zookeeper
from tests.cli.conftest import run_odradek

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.cli.conftest import Ran

pytestmark = pytest.mark.timeout(300)
WAIT_S = 120


class Brokers:
    """The supervisor, its ready line and its log."""

    def __init__(self, connect: str, directory: Path) -> None:
        self.process = subprocess.Popen(
            [
                sys.executable, "-m", "odradek", "broker", "--processes", "3", "--format", "json",
                "--override=node.id=1", "--override=listeners=PLAINTEXT://127.0.0.1:0",
                f"--override=zookeeper.connect={connect}/three", f"--override=log.dirs={directory}",
                "--override=group.initial.rebalance.delay.ms=0", "--override=auto.leader.rebalance.enable=false",
            ],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        self.events: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
        threading.Thread(target=self._read_log, daemon=True).start()
        assert self.process.stdout is not None
        self.ready: dict[str, Any] = json.loads(self.process.stdout.readline())
        self.pids: dict[int, int] = {each["node_id"]: each["pid"] for each in self.ready["brokers"]}

    def _read_log(self) -> None:
        assert self.process.stderr is not None
        with self.process.stderr as log:
            for line in log:
                self.events.put(json.loads(line))

    def next_event(self, name: str) -> dict[str, Any]:
        while (event := self.events.get(timeout=WAIT_S))["event"] != name:
            pass
        return event

    @property
    def bootstrap_servers(self) -> str:
        endpoints = [each["endpoints"][0] for each in self.ready["brokers"]]
        return ",".join(f"{each['host']}:{each['port']}" for each in endpoints)

    def run(self, *arguments: str, **rest: Any) -> Ran:
        return run_odradek(*arguments, ODRADEK_BOOTSTRAP_SERVER=self.bootstrap_servers, **rest)

    def row(self, *arguments: str) -> dict[str, Any]:
        ran = self.run(*arguments, "--format", "json")
        assert ran.code == 0, ran.errors
        return ran.row

    def kill(self, node_id: int) -> None:
        os.kill(self.pids[node_id], signal.SIGKILL)

    def await_restart(self, node_id: int) -> None:
        event = self.next_event("broker is ready")
        assert event["node_id"] == node_id
        self.pids[node_id] = event["pid"]


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.1)  # a poll's pause


@pytest.fixture(scope="module")
def brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Brokers]:
    if shutil.which("java") is None:
        pytest.skip("needs Java, 11 or newer, on the PATH")
    directory = tmp_path_factory.mktemp("brokers")
    with zookeeper() as server:
        running = Brokers(server.connect, directory)
        try:
            yield running
            check_that_sigterm_stops_one_broker_after_another(running)
        finally:
            running.process.kill()
            running.process.wait()
            assert running.process.stdout is not None
            running.process.stdout.close()


def check_that_sigterm_stops_one_broker_after_another(brokers: Brokers) -> None:
    """At the end of this file's tests, whose order is random."""
    brokers.process.send_signal(signal.SIGTERM)
    assert brokers.process.wait(WAIT_S) == 0
    order = []
    while (event := brokers.events.get(timeout=WAIT_S)).get("node_id") or event["event"] != "stopped":
        if event["event"] in ("stopping", "stopped") and "node_id" in event:
            order.append((event["event"], event["node_id"]))
    assert order == [(event, node_id) for node_id in (3, 2, 1) for event in ("stopping", "stopped")]


def test_one_ready_line_names_all_brokers(brokers: Brokers) -> None:
    assert brokers.ready["event"] == "ready"
    assert [each["node_id"] for each in brokers.ready["brokers"]] == [1, 2, 3]
    assert [each["log_dirs"][0].rpartition("/")[2] for each in brokers.ready["brokers"]] == [
        "broker-1",
        "broker-2",
        "broker-3",
    ]


def test_a_broker_that_dies_is_started_again_on_its_port(brokers: Brokers) -> None:
    brokers.kill(3)
    ended = brokers.next_event("broker ended")
    assert (ended["node_id"], ended["reason"]) == (3, "SIGKILL")
    brokers.await_restart(3)
    shown = {each["id"]: f"{each['host']}:{each['port']}" for each in brokers.row("cluster", "info")["brokers"]}
    assert [shown[node_id] for node_id in (1, 2, 3)] == brokers.bootstrap_servers.split(",")
