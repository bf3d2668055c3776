"""`odradek demo --brokers 3`: a leader is killed, and nothing that was acknowledged is lost."""

from __future__ import annotations

import io
import shutil
from typing import TYPE_CHECKING

import pytest
from rich.console import Console

from odradek.admin.broker_requests import DescribedCluster, KnownBroker
from odradek.admin.cluster_state import ClusterState, PartitionState
from odradek.cli.demo.cluster_demo import BrokerView, ClusterFrame, Event, draw
from odradek.cli.demo.load import Acknowledgements
from odradek.cli.framework.output import cut_text

if TYPE_CHECKING:
    from tests.commands import Run


@pytest.mark.soak
@pytest.mark.timeout(300)
def test_a_killed_leader_costs_no_acknowledged_record(offline: Run) -> None:
    if shutil.which("java") is None:
        pytest.skip("needs Java, 11 or newer, on the PATH")
    options = ("--brokers", "3", "--port", "0", "--seconds", "5", "--kill-every", "4", "--rate", "60")
    ran = offline("demo", *options, "--format", "json", timeout_s=240)
    assert ran.code == 0, ran.errors
    ready, *_, summary = ran.rows
    assert len(ready["bootstrap_servers"].split(",")) == 3
    assert any("killed (" in row.get("text", "") for row in ran.rows)
    assert summary["acknowledged"] == summary["read"] > 60
    assert (summary["lost"], summary["repeated"], summary["reordered"], summary["refused"]) == (0, 0, 0, 0)


def test_killing_needs_other_brokers(offline: Run) -> None:
    ran = offline("demo", "--kill-every", "3")
    assert ran.code == 2
    assert "--brokers" in ran.errors


def test_the_picture_fits_80_columns() -> None:
    acks = Acknowledgements(2, 0.0)
    for partition in acks.partitions:
        partition.take(0, 10.0)
        partition.take(1, 11.5)
    described = {number: KnownBroker(number, "127.0.0.1", 9091 + number, None, number == 2) for number in (1, 2)}
    partitions = [PartitionState("t", 0, 1, (1, 2), (1,)), PartitionState("t", 1, -1, (2, 1), ())]
    state = ClusterState(DescribedCluster("id", 1, described), partitions)
    brokers = [BrokerView(1, "127.0.0.1:9092", "running", 0.0), BrokerView(2, "127.0.0.1:9093", "killed", 12.0)]
    console = Console(width=80, record=True, force_terminal=True, file=io.StringIO())
    events = [Event("10:00:00", "broker 2 killed")]
    console.print(cut_text(draw(ClusterFrame(brokers, state, acks, events, "t", 13.0), 10.0)))
    lines = console.export_text().splitlines()
    assert len(lines) <= 23
    assert not any(line.rstrip().endswith("…") for line in lines)
    assert any("killed 1.0 s" in line and "fenced" in line for line in lines)
    assert any(line.startswith("        0       1  1 ·") and "1,500 ms" in line for line in lines)
    assert any("none" in line for line in lines)
