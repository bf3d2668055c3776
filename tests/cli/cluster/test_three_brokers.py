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
from typing import TYPE_CHECKING, Any, Self

import pytest
from confluent_kafka import Producer

from odradek.testing import zookeeper
from tests.commands import run_odradek
from tests.jvm.tools import ToolSession
from tests.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.commands import Ran

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
        self.directory = directory
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

    def stop(self, node_id: int) -> None:
        """The supervisor starts it again."""
        os.kill(self.pids[node_id], signal.SIGTERM)

    def await_restart(self, node_id: int) -> None:
        event = self.next_event("broker is ready")
        assert event["node_id"] == node_id
        self.pids[node_id] = event["pid"]


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


def create_topic(brokers: Brokers, name: str, partitions: int = 3, replicas: int = 3) -> None:
    brokers.row("topic", "create", name, "--partitions", str(partitions), "--replication-factor", str(replicas))


def partitions_of(brokers: Brokers, topic: str) -> dict[int, dict[str, Any]]:
    described = brokers.row("topic", "describe", topic)
    return {each["partition"]: each for each in described["partitions"]}


class Load:
    """Idempotent producing with acks=all, until the end of the context. Numbers of acknowledged records."""

    def __init__(self, brokers: Brokers, topic: str) -> None:
        settings = {"bootstrap.servers": brokers.bootstrap_servers, "enable.idempotence": True, "log_level": 0}
        self._producer = Producer(settings)
        self._topic = topic
        self._is_done = threading.Event()
        self._thread = threading.Thread(target=self._send)
        self.acknowledged: list[int] = []
        self.errors: list[object] = []

    def _send(self) -> None:
        number = 0
        while not self._is_done.is_set():
            self._produce(number)
            number += 1
            self._producer.poll(0.02)
        self._producer.flush(WAIT_S)

    def _produce(self, number: int) -> None:
        def take(error: object, _message: object) -> None:
            if error is None:
                self.acknowledged.append(number)
            else:
                self.errors.append(error)

        self._producer.produce(self._topic, str(number), on_delivery=take)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_exception: object) -> None:
        self._is_done.set()
        self._thread.join()


@pytest.mark.more
def test_brokers_die_and_restart_one_after_another_and_nothing_is_lost(brokers: Brokers) -> None:
    """The restarts are those of docs/clusters.md: stop, start, wait until all replicas are in sync, next."""
    create_topic(brokers, "rolling")
    with Load(brokers, "rolling") as load:
        check_death_and_return(brokers, 1, "rolling")
        for node_id in (2, 3):
            brokers.stop(node_id)
            brokers.next_event("broker ended")
            brokers.await_restart(node_id)
            wait_until_healthy(brokers)
    rows = brokers.run("consume", "rolling", "--from-beginning", "--until-end", "--format", "json").rows
    assert not load.errors
    assert sorted(int(row["value"]) for row in rows) == sorted(load.acknowledged) == list(range(len(rows)))
    assert len(rows) > 50


def check_death_and_return(brokers: Brokers, node_id: int, topic: str) -> None:
    """The status shows a killed broker, while its supervisor is suspended; it returns on its port."""
    status: dict[str, Any] = {}

    def is_noticed() -> bool:
        """The states of brokers and of partitions are read one after the other."""
        status.update(brokers.row("cluster", "status"))
        is_fenced = {each["id"]: each["state"] for each in status["brokers"]}[node_id] == "fenced"
        return is_fenced and any(each["topic"] == topic for each in status["under_replicated"])

    brokers.process.send_signal(signal.SIGSTOP)
    try:
        brokers.kill(node_id)
        eventually(is_noticed)
    finally:
        brokers.process.send_signal(signal.SIGCONT)
    assert not status["healthy"]
    assert all(node_id not in each["in_sync"] for each in status["under_replicated"] if each["topic"] == topic)
    ended = brokers.next_event("broker ended")
    assert (ended["node_id"], ended["reason"]) == (node_id, "SIGKILL")
    brokers.await_restart(node_id)
    wait_until_healthy(brokers)
    shown = {each["id"]: f"{each['host']}:{each['port']}" for each in brokers.row("cluster", "info")["brokers"]}
    assert [shown[each] for each in (1, 2, 3)] == brokers.bootstrap_servers.split(",")


def wait_until_healthy(brokers: Brokers) -> None:
    ran = brokers.run("cluster", "status", "--wait", str(WAIT_S), timeout_s=2 * WAIT_S)
    assert ran.code == 0, ran.output + ran.errors
    assert "fenced" not in ran.output


def test_replicas_are_added_moved_and_drained(brokers: Brokers) -> None:
    create_topic(brokers, "moved", 3, 1)
    assert brokers.run("produce", "moved", "-v", "one").code == 0
    planned = brokers.row("partition", "reassign", "moved", "--replication-factor", "3", "--dry-run")
    assert not planned["submitted"]
    assert sum(each["bytes_to_copy"] for each in planned["partitions"]) > 0
    ran = brokers.run("partition", "reassign", "moved", "--replication-factor", "3", "--yes", "--wait")
    assert ran.code == 0, ran.errors
    assert "6 replicas to copy" in ran.output
    assert "done after" in ran.output
    assert all(len(each["in_sync_replicas"]) == 3 for each in partitions_of(brokers, "moved").values())
    drained = brokers.run(
        "partition", "reassign", "moved", "--drain", "2", "--replication-factor", "2", "--yes", "--wait",
        "--throttle", "10000000",
    )  # fmt: skip
    assert drained.code == 0, drained.errors
    assert all(2 not in each["replicas"] for each in partitions_of(brokers, "moved").values())
    assert brokers.row("partition", "reassign", "--verify")["done"]
    assert "throttled" not in brokers.run("config", "describe", "topic", "moved").output
    running = brokers.run("cluster", "unregister", "2", "--yes")
    assert (running.code, "broker 2 is running: stop it first" in running.errors) == (1, True)
    refused = brokers.run("partition", "reassign", "moved", "--to", "1,9", "--yes")
    assert (refused.code, "broker 9 does not run" in refused.errors) == (1, True)


def test_leadership_returns_to_the_preferred_leader(brokers: Brokers) -> None:
    create_topic(brokers, "led", 1)
    (partition,) = partitions_of(brokers, "led").values()
    others = [replica for replica in partition["replicas"] if replica != partition["leader"]]
    order = ",".join(map(str, [*others, partition["leader"]]))
    plan = {
        "version": 1,
        "partitions": [{"topic": "led", "partition": 0, "replicas": list(map(int, order.split(",")))}],
    }
    file = brokers.directory / "plan.json"
    file.write_text(json.dumps(plan))
    assert brokers.run("partition", "reassign", "--file", str(file), "--yes", "--wait").code == 0
    shown = brokers.run("partition", "elect", "led", "--dry-run")
    assert f"{partition['leader']}" in shown.output
    assert "led-0" in shown.output
    assert brokers.row("partition", "elect", "led", "--yes")["elected"] == 1
    assert partitions_of(brokers, "led")[0]["leader"] == others[0]
    assert "nothing to elect" in brokers.run("partition", "elect", "led", "--yes").output


@pytest.mark.more
def test_kafkas_tools_agree(brokers: Brokers, jvm: None) -> None:
    create_topic(brokers, "tools", 2, 2)
    before = partitions_of(brokers, "tools")
    missing = {index: ({1, 2, 3} - set(each["replicas"])).pop() for index, each in before.items()}
    after = {index: [missing[index], each["replicas"][0]] for index, each in before.items()}
    rows = [{"topic": "tools", "partition": index, "replicas": replicas} for index, replicas in after.items()]
    file = str(brokers.directory / "tools.json")
    with open(file, "w", encoding="utf-8") as opened:
        json.dump({"version": 1, "partitions": rows}, opened)
    server = ("--bootstrap-server", brokers.bootstrap_servers)
    with ToolSession() as tools:
        moved = tools.run("kafka-reassign-partitions", *server, "--reassignment-json-file", file, "--execute",
                          "--throttle", "100000000").checked()  # fmt: skip
        assert "Successfully started partition reassignments for tools-0,tools-1" in moved
        eventually(lambda: brokers.run("partition", "reassign", "tools", "--verify", "--file", file).code == 0)
        verified = tools.run(
            "kafka-reassign-partitions", *server, "--reassignment-json-file", file, "--verify"
        ).checked()
        assert verified.count("is completed") == 2
        listed = tools.run("kafka-topics", *server, "--describe", "--topic", "tools").checked()
        for index, replicas in after.items():
            assert (
                f"Partition: {index}\tLeader: {before[index]['replicas'][0]}\tReplicas: {replicas[0]},{replicas[1]}"
                in listed
            )
        tools.run("kafka-leader-election", *server, "--election-type", "preferred", "--topic", "tools",
                  "--partition", "0").checked()  # fmt: skip
        quorum = tools.run("kafka-metadata-quorum", *server, "describe", "--status")
        assert "does not support DESCRIBE_QUORUM" in quorum.errors  # docs/clusters.md explains it
    assert partitions_of(brokers, "tools")[0]["leader"] == missing[0]
    assert [each["partition"] for each in brokers.row("cluster", "status")["not_on_preferred_leader"]
            if each["topic"] == "tools"] == [1]  # fmt: skip
