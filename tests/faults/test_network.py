"""Brokers that are cut off, and a slow network between them."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from tests.faults.running import EVENTS, Run

if TYPE_CHECKING:
    from tests.faults.report import Report

pytestmark = [pytest.mark.faults, pytest.mark.timeout(420)]

CUT_S = 20.0
SLOW_S = 30.0
AFTER_FAULT_S = 6.0


@pytest.mark.parametrize(
    ("key", "is_controller", "has_zookeeper", "sending", "receiving"),
    [
        ("cut-off", False, True, True, True),
        ("cut-off-controller", True, True, True, True),
        ("cut-followers", False, False, True, True),
        ("cut-followers-controller", True, False, True, True),
        ("cut-sending", False, True, True, False),
        ("cut-receiving", False, True, False, True),
    ],
)
def test_leader_that_is_cut_off(
    report: Report, key: str, is_controller: bool, has_zookeeper: bool, sending: bool, receiving: bool
) -> None:
    """An acknowledgement of the leader after others have taken over would be a record that is lost or moved."""
    with report.row(key) as row, Run(has_network=True) as run:
        leader = run.led_by(controller=is_controller)
        began_s = time.monotonic()
        run.cluster.cut(leader, zookeeper=has_zookeeper, sending=sending, receiving=receiving)
        row.expect("new leader after", run.leaves_leadership(leader))
        time.sleep(max(CUT_S - (time.monotonic() - began_s), 0))  # a poll's pause: the duration of the fault
        cut_gap_s = run.gap_s(began_s)
        run.cluster.heal()
        time.sleep(AFTER_FAULT_S)  # a poll's pause: gaps in what follows the fault count as well
        row.expect("gap", max(cut_gap_s, run.gap_s(began_s)), 8.0)
        row.note_commits(run, began_s)
        run.wait_for_in_sync()
        row.conclude(run)


@pytest.mark.parametrize(
    ("key", "delay_ms", "megabits_per_s", "loss"), [("slow-network", 100, 3, 0.0), ("loss", 0, 0, 0.1)]
)
def test_slow_network(report: Report, key: str, delay_ms: float, megabits_per_s: float, loss: float) -> None:
    with report.row(key) as row, Run(has_network=True) as run:
        before = {name: each.leader_epoch for name, each in run.view().partitions.items()}
        began_s = time.monotonic()
        run.cluster.slow_down(delay_ms=delay_ms, megabits_per_s=megabits_per_s, loss=loss)
        time.sleep(SLOW_S)  # a poll's pause: the duration of the fault
        row.expect("", run.gap_s(began_s))
        row.note_commits(run, began_s)
        after = {name: each.leader_epoch for name, each in run.view().partitions.items()}
        row.require("no leader change", all(after[name] == epoch for name, epoch in before.items()))
        row.require(f"acknowledgements of {EVENTS}", len(run.loads[EVENTS].acknowledged) > 0)
        run.cluster.slow_down()
        run.wait_for_in_sync()
        row.conclude(run)
