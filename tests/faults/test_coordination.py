"""ZooKeeper that is away, many elections, and a replica that has lost records."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from odradek.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignableTopic,
)
from odradek.protocol.messages.elect_leaders import ElectLeadersRequest, ElectLeadersResponse, TopicPartitions
from odradek.server.last_registration import FILE_NAME
from tests.faults.running import EVENTS, Run

if TYPE_CHECKING:
    from tests.faults.report import Report

pytestmark = [pytest.mark.faults, pytest.mark.timeout(420)]

AFTER_FAULT_S = 6.0
LEADER_CHANGES = 50
LOST_BYTES = 5_000


def test_zookeeper_is_down(report: Report) -> None:
    with report.row("zookeeper-down") as row, Run() as run:
        began_s = time.monotonic()
        run.cluster.zookeeper.kill()
        time.sleep(60)  # a poll's pause: the duration of the fault
        row.expect("while it is down", run.gap_s(began_s), 8.0)
        run.cluster.zookeeper.start()
        returned_s = time.monotonic()
        time.sleep(15)  # a poll's pause: sessions continue, or expire and are replaced
        row.expect("after its return", run.gap_s(returned_s), 8.0)
        row.note_commits(run, began_s)
        row.require("no errors", not run.problems)
        run.wait_for_in_sync()
        row.conclude(run)


def test_all_sessions_expire(report: Report) -> None:
    with report.row("sessions-expired") as row, Run(has_network=True) as run:
        began_s = time.monotonic()
        for broker in run.cluster.brokers:
            run.cluster.cut(broker, peers=[], zookeeper=True)
        time.sleep(15)  # a poll's pause: longer than the sessions last
        run.cluster.heal()
        healed_s = time.monotonic()
        run.wait_for("all brokers are registered", lambda: len(run.view().brokers) == 3)
        time.sleep(AFTER_FAULT_S)  # a poll's pause: gaps in what follows the fault count as well
        row.expect("", run.gap_s(began_s), 8.0)
        row.note_commits(run, began_s)
        expired = [
            broker.output.count("registered again in a new ZooKeeper session")
            for broker in run.cluster.brokers.values()
        ]
        row.require("every session has expired", all(expired))
        row.require("no errors", not run.problems)
        run.wait_for_acknowledgements(healed_s)
        run.wait_for_in_sync()
        row.conclude(run)


def test_many_leader_changes(report: Report) -> None:
    with report.row("leader-changes") as row, Run() as run:
        began_s = time.monotonic()
        epoch = run.view().partitions[EVENTS, 0].leader_epoch
        for _ in range(LEADER_CHANGES):
            replicas = run.view().partitions[EVENTS, 0].replica_nodes
            run.wait_for_in_sync()
            change_leader(run, [*replicas[1:], replicas[0]])
        changes = run.view().partitions[EVENTS, 0].leader_epoch - epoch
        row.require(f"{LEADER_CHANGES} leader changes", changes >= LEADER_CHANGES)
        row.expect(f"{changes} changes in {time.monotonic() - began_s:.0f} s, gap", run.gap_s(began_s))
        row.note_commits(run, began_s)
        row.conclude(run)


def change_leader(run: Run, replicas: list[int]) -> None:
    """The first of the replicas becomes the leader."""
    partition = ReassignablePartition(partition_index=0, replicas=replicas)
    topics = [ReassignableTopic(name=EVENTS, partitions=[partition])]
    run.call(AlterPartitionReassignmentsRequest(topics=topics), AlterPartitionReassignmentsResponse)
    election = ElectLeadersRequest(topic_partitions=[TopicPartitions(topic=EVENTS, partitions=[0])])

    def is_elected() -> bool:
        run.call(election, ElectLeadersResponse)
        return run.view().leader() == replicas[0]

    run.wait_for("the new leader", is_elected)


def test_last_replica_loses_its_tail(report: Report) -> None:
    """The machine of the last replica in sync fails: after its restart the log is shorter."""
    with report.row("lost-tail") as row, Run() as run:
        last = run.led_by(controller=True)
        others = [each for each in run.cluster.brokers if each != last]
        index = next(each for each in range(3) if run.view().leader(EVENTS, each) == last)
        for each in others:
            run.cluster.kill(each)
        run.wait_for("one replica is in sync", lambda: run.view().in_sync(EVENTS, index) == {last})
        run.cluster.kill(last)
        lose_power(Path(run.cluster.brokers[last].data_directory), f"{EVENTS}-{index}")
        run.cluster.start(last)
        time.sleep(5)  # a poll's pause: in which it must not be elected
        row.require("the truncated replica is not elected", run.view().leader(EVENTS, index) != last)
        returned_s = time.monotonic()
        for each in others:
            run.cluster.start(each)
        run.wait_for_acknowledgements(time.monotonic())
        row.require("another replica is elected", run.view().leader(EVENTS, index) in others)
        row.expect("acknowledgements after the others' return:", time.monotonic() - returned_s)
        run.wait_for_in_sync()
        row.conclude(run)


def lose_power(directory: Path, partition: str) -> None:
    """The end of the log is lost, and the machine has another boot id."""
    segment = max((directory / partition).glob("*.log"))
    with segment.open("r+b") as file:
        file.truncate(max(segment.stat().st_size - LOST_BYTES, 0))
    registration = directory / FILE_NAME
    fields = json.loads(registration.read_text())
    registration.write_text(json.dumps({**fields, "boot_id": "another boot"}))
