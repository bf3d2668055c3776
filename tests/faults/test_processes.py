"""Brokers that are killed, stopped and suspended."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from tests.faults.running import EVENTS, Run

if TYPE_CHECKING:
    from tests.faults.report import Report, Row

pytestmark = [pytest.mark.faults, pytest.mark.timeout(420)]

AFTER_FAULT_S = 6.0
WITH_SHORT_TIMEOUT = "events-short-timeout"
FAST = {"socket.timeout.ms": 10_000}


def end_leaders(row: Row, run: Run, *, controller: bool, kill: bool, times: int, at_most: float) -> None:
    for _ in range(times):
        leader = run.led_by(controller=controller)
        began_s = time.monotonic()
        (run.cluster.kill if kill else run.cluster.stop)(leader)
        run.wait_for_acknowledgements(time.monotonic())
        time.sleep(AFTER_FAULT_S)  # a poll's pause: gaps in what follows the fault count as well
        row.expect("", run.gap_s(began_s), at_most)
        row.note_commits(run, began_s)
        run.cluster.start(leader)
        run.elect_preferred_leaders()
    row.conclude(run)


def test_killed_leader(report: Report) -> None:
    with report.row("kill") as row, Run() as run:
        end_leaders(row, run, controller=False, kill=True, times=3, at_most=2.0)


def test_terminated_leader(report: Report) -> None:
    with report.row("term") as row, Run() as run:
        end_leaders(row, run, controller=False, kill=False, times=3, at_most=0.3)


def test_killed_controller_and_leader(report: Report) -> None:
    with report.row("kill-controller") as row, Run() as run:
        end_leaders(row, run, controller=True, kill=True, times=2, at_most=4.0)


def suspend_leader(row: Row, run: Run, *, controller: bool, seconds: float) -> None:
    leader = run.led_by(controller=controller)
    began_s = time.monotonic()
    run.cluster.suspend(leader)
    row.expect("new leader after", run.leaves_leadership(leader), 5.0)
    time.sleep(max(seconds - (time.monotonic() - began_s), 0))  # a poll's pause: the duration of the fault
    run.cluster.resume(leader)
    resumed_s = time.monotonic()
    run.wait_for_acknowledgements(resumed_s)
    time.sleep(AFTER_FAULT_S)  # a poll's pause: gaps in what follows the fault count as well
    row.expect("gap with default time-outs", run.gap_s(began_s))
    row.expect("with `socket.timeout.ms=10000`", run.gap_s(began_s, WITH_SHORT_TIMEOUT), 11.0)
    row.note_commits(run, began_s)
    run.wait_for_in_sync()
    row.conclude(run)


def test_suspended_leader(report: Report) -> None:
    with report.row("stop-leader") as row, Run(producers={EVENTS: {}, WITH_SHORT_TIMEOUT: FAST}) as run:
        suspend_leader(row, run, controller=False, seconds=60)


def test_suspended_controller_and_leader(report: Report) -> None:
    with report.row("stop-controller") as row, Run(producers={EVENTS: {}, WITH_SHORT_TIMEOUT: FAST}) as run:
        suspend_leader(row, run, controller=True, seconds=15)


def test_suspended_follower(report: Report) -> None:
    """Only partitions that the suspended broker does not lead: one with a leader that hangs is another row."""
    with report.row("stop-follower") as row, Run() as run:
        follower = run.led_by(controller=False)
        run.cluster.stop(follower)  # it leads nothing after it has returned
        run.cluster.start(follower)
        run.wait_for_in_sync()
        row.require("the broker leads nothing", all(each.leader_id != follower for each in run.partitions()))
        began_s = time.monotonic()
        run.cluster.suspend(follower)
        time.sleep(30)  # a poll's pause: the duration of the fault
        run.cluster.resume(follower)
        time.sleep(AFTER_FAULT_S)  # a poll's pause: gaps in what follows the fault count as well
        row.expect("", run.gap_s(began_s), 5.0)
        row.note_commits(run, began_s)
        run.wait_for_in_sync()
        row.conclude(run)


def test_everything_killed(report: Report) -> None:
    with report.row("kill-all") as row, Run(idle_partitions=1000) as run:
        brokers = run.cluster.brokers
        began_s = time.monotonic()
        with ThreadPoolExecutor(len(brokers)) as killing:
            list(killing.map(run.cluster.kill, brokers))
        run.cluster.start()
        row.expect("started after", time.monotonic() - began_s)
        run.wait_for_acknowledgements(time.monotonic())
        time.sleep(AFTER_FAULT_S)  # a poll's pause: gaps in what follows the fault count as well
        row.expect("gap", run.gap_s(began_s), 8.0)
        row.note_commits(run, began_s)
        run.wait_for_in_sync()
        row.conclude(run)


def test_rolling_bounces(report: Report) -> None:
    with report.row("bounces") as row, Run() as run:
        for number in range(5):
            broker = 1 + number % 3
            began_s = time.monotonic()
            run.cluster.kill(broker)
            run.cluster.start(broker)
            run.wait_for_in_sync()
            time.sleep(1)  # a poll's pause: under load between two faults
            row.expect("", run.gap_s(began_s), 2.0)
            row.note_commits(run, began_s)
        row.conclude(run)
