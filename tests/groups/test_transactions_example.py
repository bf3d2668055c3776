"""The example of transactions does what its README says, killed at every step."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from odradek.testing import RunningBroker

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "transactions"


def run_example(address: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(EXAMPLE / "exactly_once.py"), address]
    return subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)


@pytest.mark.timeout(300)
def test_each_order_has_one_invoice_though_workers_are_killed(odradek_broker: RunningBroker) -> None:
    done = run_example(odradek_broker.bootstrap_servers)
    assert done.returncode == 0, done.stderr
    readme = (EXAMPLE / "README.md").read_text()
    assert f"```\n{done.stdout}```" in readme, done.stdout
    assert done.stdout.endswith("30 orders: 0 without an invoice, 0 with more than one\n")


def test_without_a_broker_it_says_so_in_one_line() -> None:
    done = run_example("127.0.0.1:1")
    assert (done.returncode, done.stdout) == (1, "")
    assert "no broker at 127.0.0.1:1" in done.stderr
    assert len(done.stderr.splitlines()) == 1
