"""Two faults in every test run: a leader is killed, and one is cut off. Times are measured by `make faults` only."""

from __future__ import annotations

import shutil
import time

import pytest

from tests.faults.documented_example import run_documented_example
from tests.faults.running import Run

RECORDS_PER_S = 200


@pytest.mark.more
@pytest.mark.skipif(shutil.which("java") is None, reason="needs Java, 11 or newer, on the PATH")
@pytest.mark.timeout(600)
def test_nothing_is_lost_when_a_leader_is_killed_and_another_one_is_cut_off() -> None:
    with Run(
        has_network=True, records_per_s=RECORDS_PER_S, properties={"transaction.state.log.num.partitions": 3}
    ) as run:
        killed = run.led_by(controller=True)
        run.cluster.kill(killed)
        run.leaves_leadership(killed)
        run.wait_for_acknowledgements(time.monotonic())
        run.cluster.start(killed)
        run.wait_for_in_sync()

        leader = run.view().leader()
        run.cluster.cut(leader)
        run.leaves_leadership(leader)
        run.wait_for_acknowledgements(time.monotonic())
        run.cluster.heal()
        run.wait_for_in_sync()

        verdict = run.finish()
        assert verdict.is_clean, str(verdict)
        assert not run.problems
        assert any(each.outcome for each in run.transactional.transactions)
        run_documented_example(run.cluster)
