"""The example of docs/testing-failover.md runs as it is printed, on the cluster of the pytest fixture. `make test` runs
it on the cluster of `faults/test_bounded.py`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.faults.documented_example import run_documented_example

if TYPE_CHECKING:
    from odradek.testing import RunningCluster


@pytest.mark.soak
@pytest.mark.timeout(600)
def test_the_first_example_runs(odradek_cluster: RunningCluster) -> None:
    run_documented_example(odradek_cluster)
