"""A console over three brokers: one is killed, and comes back; replicas are moved by a plan."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]  # not in __all__

from odradek.admin.broker_requests import BrokerRequests
from odradek.admin.cluster import Cluster
from odradek.console.cluster.records import Unreadable, follow
from tests.console.browsing import CHROMIUM, open_browser, open_page
from tests.console.conftest import Visitor, running_console
from tests.waiting import eventually

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
        page = wait_for(visitor, "/", "1 broker fenced", "Needs attention")
        assert "under-replicated" in page
        assert "no record" not in wait_for(visitor, "/topics?only=problems", "orders")
        wait_for(visitor, "/brokers", ">fenced<")
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
        wait_for(visitor, "/", "1 broker fenced")
        took_s = time.monotonic() - began_at
        print(f"the broker is shown as fenced after {took_s:.1f} s")
        odradek_cluster.resume(3)
        wait_for(visitor, "/", "All brokers run, and all replicas are in sync")
    assert took_s < 45.0  # its session ends, and a round waits for one timeout


def test_a_partition_without_a_leader_hides_nothing_else(odradek_cluster: RunningCluster) -> None:
    """Its only replica is on a broker that is killed."""
    addresses = odradek_cluster.bootstrap_servers
    cluster = Cluster(addresses, {})
    leaders = dict(enumerate((1, 2, 3)))
    single = NewTopic("single", num_partitions=3, replica_assignment=[[each] for each in leaders.values()])
    admin = AdminClient({"bootstrap.servers": addresses})
    eventually(lambda: admin.create_topics([single])["single"].exception() is None)  # a broker is fenced at its start
    producer = Producer({"bootstrap.servers": addresses})
    for partition in leaders:
        producer.produce("single", f"value-{partition}.", partition=partition)
    assert producer.flush(PATIENCE_S) == 0
    consumer = Consumer({"bootstrap.servers": addresses, "group.id": "readers"})
    consumer.commit(offsets=[TopicPartition("single", each, 0) for each in leaders], asynchronous=False)
    consumer.close()
    # Requests that librdkafka sends to the controller must find the new one.
    killed = BrokerRequests(cluster).describe().controller_id
    assert killed is not None
    lost = [each for each, leader in leaders.items() if leader == killed]
    with running_console(addresses) as address:
        visitor = Visitor(address)
        wait_for(visitor, "/groups", "readers")
        odradek_cluster.kill(killed)
        wait_for(visitor, "/", "offline")
        asked_at = time.monotonic()
        page = wait_for(visitor, "/group?name=readers", "no leader")
        assert page.count("no leader") == len(lost)
        assert "not counted" in page
        page = wait_for(visitor, "/topics/single", f"not read: partition {', '.join(map(str, lost))}.")
        assert [each for each in leaders if f"value-{each}." not in page] == lost
        unread = visitor.get(f"/topics/single?partition={lost[0]}")
        assert unread.status == 422
        assert "Records were not read" in unread.text
        assert "is empty" not in page + unread.text
        wait_for(visitor, "/transactions", "ransactions")
        print(f"four pages took {time.monotonic() - asked_at:.1f} s")
    tailed: set[int] = set()
    is_stopped = threading.Event()

    def tail() -> None:
        for batch in follow(Cluster(addresses, {}), "single", None, is_stopped.is_set, Unreadable()):
            tailed.update(each.partition for each in batch)

    def produce_until_tailed(partitions: set[int]) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while tailed != partitions:
            assert time.monotonic() < deadline, tailed
            for each in partitions:
                producer.produce("single", "new", partition=each)
            producer.flush(1)

    thread = threading.Thread(target=tail)
    thread.start()
    try:
        produce_until_tailed(set(leaders) - set(lost))
        odradek_cluster.start(killed)
        produce_until_tailed(set(leaders))
    finally:
        is_stopped.set()
        thread.join()


@pytest.mark.more
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
        page.wait_for_selector("text=1 broker fenced", timeout=patience_ms)
        page.wait_for_selector("text=under-replicated", timeout=patience_ms)
        print(f"the page shows the killed broker after {time.monotonic() - killed_at:.1f} s")
        odradek_cluster.start(3)
        started_at = time.monotonic()
        page.wait_for_selector(well, timeout=patience_ms)
        print(f"the page shows the cluster in sync {time.monotonic() - started_at:.1f} s after the start")
        assert page.evaluate("window.isSamePage")
