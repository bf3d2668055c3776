"""A console over three brokers: one is killed, and comes back; replicas are moved by a plan."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from odradek.cli.client.cluster import Cluster
from tests.console.browsing import CHROMIUM, open_browser, open_page
from tests.console.conftest import Visitor, running_console

if TYPE_CHECKING:
    from odradek.testing import RunningCluster

PATIENCE_S = 90.0
SLOW_S = 1.0  # answers that take longer are printed

pytestmark = [pytest.mark.soak, pytest.mark.timeout(600)]


def wait_for(visitor: Visitor, path: str, *words: str) -> str:
    """The page, once it has all the words."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        asked_at = time.monotonic()
        answer = visitor.get(path)
        took_s = time.monotonic() - asked_at
        if took_s > SLOW_S:
            print(f"{path} took {took_s:.1f} s")
        if all(word in answer.text for word in words):
            return answer.text
        assert time.monotonic() < deadline, f"{path} does not show {words}:\n{answer.text}"
        time.sleep(0.2)  # a poll's pause


def test_a_broker_that_dies_is_seen_and_replicas_are_moved(odradek_cluster: RunningCluster) -> None:
    addresses = odradek_cluster.bootstrap_servers
    assert Cluster(addresses, {}).create_topic("orders", 4, 3)
    with running_console(addresses) as address:
        visitor = Visitor(address)
        wait_for(visitor, "/", "All brokers run, and all replicas are in sync")
        odradek_cluster.kill(3)
        page = wait_for(visitor, "/", "1 broker down", "Needs attention")
        assert "under-replicated" in page
        assert "no record" not in wait_for(visitor, "/topics?only=problems", "orders")
        wait_for(visitor, "/brokers", "down")
        odradek_cluster.start(3)
        wait_for(visitor, "/", "All brokers run, and all replicas are in sync")

        preview = visitor.post("/brokers/preview", {"topics": "orders", "factor": "2"})
        assert "Plan: 4 partitions" in preview.text
        plan = preview.text.partition('name="plan" value="')[2].partition('"><button')[0]
        assert "Began to move 4 partitions" in visitor.post("/brokers/move", {"plan": plan}).text
        wait_for(visitor, "/topics/orders", "4 partitions × 2 replicas")
        stale = visitor.post("/brokers/move", {"plan": plan})
        assert stale.status == 422
        assert "other replicas than the preview shows" in stale.text


def test_a_broker_that_hangs_is_seen_within_seconds(odradek_cluster: RunningCluster) -> None:
    addresses = odradek_cluster.bootstrap_servers
    assert Cluster(addresses, {}).create_topic("orders", 4, 3)
    with running_console(addresses) as address:
        visitor = Visitor(address)
        wait_for(visitor, "/", "All brokers run, and all replicas are in sync")
        odradek_cluster.suspend(3)
        began_at = time.monotonic()
        wait_for(visitor, "/brokers", "Broker 3 does not answer")
        print(f"pages say that the broker does not answer after {time.monotonic() - began_at:.1f} s")
        wait_for(visitor, "/", "1 broker down")
        took_s = time.monotonic() - began_at
        print(f"the broker is shown as down after {took_s:.1f} s")
        odradek_cluster.resume(3)
        wait_for(visitor, "/", "All brokers run, and all replicas are in sync")
    assert took_s < 45.0  # its session ends, and a round waits for one timeout


@pytest.mark.skipif(CHROMIUM is None, reason="needs Debian's package chromium on the PATH")
def test_an_open_page_shows_a_broker_that_dies_and_comes_back(odradek_cluster: RunningCluster) -> None:
    """The page is not loaded again by its reader."""
    addresses = odradek_cluster.bootstrap_servers
    assert Cluster(addresses, {}).create_topic("orders", 4, 3)
    well, patience_ms = "text=All brokers run, and all replicas are in sync", PATIENCE_S * 1000
    with running_console(addresses) as address, open_browser() as browser, open_page(browser, address) as page:
        page.goto("/")
        page.wait_for_selector(well, timeout=patience_ms)
        page.evaluate("window.isSamePage = true")
        odradek_cluster.kill(3)
        killed_at = time.monotonic()
        page.wait_for_selector("text=1 broker down", timeout=patience_ms)
        page.wait_for_selector("text=under-replicated", timeout=patience_ms)
        print(f"the page shows the killed broker after {time.monotonic() - killed_at:.1f} s")
        odradek_cluster.start(3)
        started_at = time.monotonic()
        page.wait_for_selector(well, timeout=patience_ms)
        print(f"the page shows the cluster in sync {time.monotonic() - started_at:.1f} s after the start")
        assert page.evaluate("window.isSamePage")
