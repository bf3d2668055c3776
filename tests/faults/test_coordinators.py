"""Coordinators that are killed: of transactions in a commit, of groups in a rebalance."""

from __future__ import annotations

import os
import signal
import threading
import time
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Consumer, KafkaException, TopicPartition

from tests.faults.loads import longest_gap_s
from tests.faults.running import EVENTS, Run

if TYPE_CHECKING:
    from tests.faults.report import Report

pytestmark = [pytest.mark.faults, pytest.mark.timeout(420)]

AFTER_FAULT_S = 10.0
GROUP = "readers"


def test_transaction_coordinator_is_killed_in_a_commit(report: Report) -> None:
    with report.row("transaction-coordinator") as row, Run() as run:
        load = run.transactional
        for _ in range(3):
            coordinator = run.coordinator(load.transactional_id, of_transactions=True)
            load.is_committing.wait(60)
            began_s = time.monotonic()
            os.kill(run.cluster.brokers[coordinator].pid, signal.SIGKILL)
            run.cluster.kill(coordinator)  # waits for its end
            run.wait_for("a commit after the fault", partial(load.has_committed_since, began_s + 0.5))
            time.sleep(2)  # a poll's pause: gaps in what follows the fault count as well
            row.expect("commits", row.note_commits(run, began_s), 8.0)
            row.expect("acknowledgements", run.gap_s(began_s))
            run.cluster.start(coordinator)
            run.wait_for_in_sync()
        row.conclude(run)


class Members:
    """Consumers of one group, which commit what they have read."""

    def __init__(self, bootstrap_servers: str) -> None:
        self._servers = bootstrap_servers
        self._threads: list[threading.Thread] = []
        self._is_finishing = threading.Event()
        self._lock = threading.Lock()
        self.committed: dict[int, int] = {}
        self.times_s: dict[int, list[float]] = {}
        self.regressions: list[str] = []

    def add(self) -> None:
        thread = threading.Thread(target=self._run, daemon=True)
        thread.start()
        self._threads.append(thread)

    def finish(self) -> None:
        self._is_finishing.set()
        for thread in self._threads:
            thread.join(60)

    def _run(self) -> None:
        consumer = Consumer(
            {
                "bootstrap.servers": self._servers,
                "group.id": GROUP,
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "partition.assignment.strategy": "cooperative-sticky",
                "log_level": 0,
            }
        )
        consumer.subscribe([EVENTS])
        while not self._is_finishing.is_set():
            records = [each for each in consumer.consume(500, 0.1) if each.error() is None]
            ends: dict[int, int] = {}
            for record in records:
                partition, offset = record.partition() or 0, record.offset() or 0
                self._check(partition, offset, ends)
                ends[partition] = offset + 1
            if ends:
                self._commit(consumer, ends)
        consumer.close()

    def _check(self, partition: int, offset: int, ends: dict[int, int]) -> None:
        """A record before the committed offset was read by another member, and committed, before."""
        with self._lock:
            if partition not in ends and offset < self.committed.get(partition, 0):
                self.regressions.append(f"partition {partition}: {offset} after {self.committed[partition]}")

    def _commit(self, consumer: Consumer, ends: dict[int, int]) -> None:
        offsets = [TopicPartition(EVENTS, partition, end) for partition, end in ends.items()]
        try:
            answered: Any = consumer.commit(offsets=offsets, asynchronous=False)
        except KafkaException:
            return  # the records are read again by their next owner
        with self._lock:
            for each in answered:
                if each.error is None:
                    self.committed[each.partition] = max(self.committed.get(each.partition, 0), each.offset)
                    self.times_s.setdefault(each.partition, []).append(time.monotonic())

    def gap_s(self, begin_s: float) -> float:
        """Of the partition with the longest time between commits."""
        now_s = time.monotonic()
        return max(longest_gap_s(times_s, begin_s, now_s) for times_s in self.times_s.values())


def test_group_coordinator_is_killed_in_a_rebalance(report: Report) -> None:
    with report.row("group-coordinator") as row, Run() as run:
        members = Members(run.cluster.bootstrap_servers)
        members.add()
        members.add()
        run.wait_for("commits of all partitions", lambda: len(members.times_s) == 3)
        coordinator = run.coordinator(GROUP, of_transactions=False)
        began_s = time.monotonic()
        members.add()
        # The new member joins, and the others have not joined again: their heartbeats are 3 s apart.
        time.sleep(0.3)  # a poll's pause
        run.cluster.kill(coordinator)
        time.sleep(AFTER_FAULT_S)  # a poll's pause: gaps in what follows the fault count as well
        row.expect("commits of offsets", members.gap_s(began_s), 5.0)
        row.expect("acknowledgements", run.gap_s(began_s))
        row.note_commits(run, began_s)
        run.cluster.start(coordinator)
        run.wait_for_in_sync()
        members.finish()
        committed = read_committed(run)
        behind = {each: (end, committed[each]) for each, end in members.committed.items() if committed[each] < end}
        row.require(f"no committed offset regressed {behind or ''}".strip(), not behind)
        row.require(f"no record was read twice {members.regressions[:2] or ''}".strip(), not members.regressions)
        row.conclude(run)


def read_committed(run: Run) -> dict[int, int]:
    consumer = Consumer({"bootstrap.servers": run.cluster.bootstrap_servers, "group.id": GROUP, "log_level": 0})
    found = consumer.committed([TopicPartition(EVENTS, index) for index in range(3)], timeout=60)
    consumer.close()
    return {each.partition: each.offset for each in found}
