"""What a browser measures: the first paint of every page with many topics, and the memory of a live tail.

CONSOLE_TOPICS=10000 CONSOLE_PARTITIONS=10 pytest -s --suite soak tests/console/test_paint.py

Prints what it measures. `first-contentful-paint` is counted from the start of the navigation, in a browser whose cache
has the console's files for the median. Before the first one the cache is empty and the browser starts a process, which
takes more than the page: it is printed, and has no limit.
"""

from __future__ import annotations

import statistics
import time
from typing import TYPE_CHECKING, NamedTuple

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from odradek.cli.client.cluster import Cluster
from tests.console.browsing import CHROMIUM, open_browser, open_page
from tests.console.conftest import Visitor
from tests.console.test_speed import (
    FIRST_PAINT_S,
    IDLE_BYTES,
    PARTITIONS,
    TOPICS,
    console_process,
    create_topics,
    loading,
    wait_for_topics,
)

if TYPE_CHECKING:
    import psutil
    from playwright.sync_api import CDPSession, Page

    from odradek.testing import RunningBroker

TOPIC = "speed-7"
GROUP = "speed-group"
TRANSACTION = "speed-transaction"
PATHS = ("/", "/topics", "/topics?q=99&sort=records&down=1", "/new-topic", f"/topics/{TOPIC}",
         f"/topics/{TOPIC}/settings", f"/topics/{TOPIC}/messages", f"/topics/{TOPIC}/record?partition=0&offset=0",
         "/groups", f"/group?name={GROUP}", f"/group/reset?name={GROUP}", "/brokers", "/transactions",
         f"/transaction?id={TRANSACTION}", "/pipelines", "/rigs", "/access", "/access/rules", "/access/check",
         "/access/quotas")  # fmt: skip
PAINT = """new Promise((found) => new PerformanceObserver((list) => {
  for (const entry of list.getEntries()) if (entry.name === "first-contentful-paint") found(entry.startTime);
}).observe({ type: "paint", buffered: true }))"""
SERVED = """(() => {
  const times = performance.getEntriesByType("navigation")[0];
  return times.responseStart - times.requestStart;
})()"""
SERVED_S = 0.1 if TOPICS <= 1000 else 0.5  # from the request to the first byte
ROUNDS = 5
IDLE_S = 10.0
TAIL_S = 120.0
SETTLED_S = 30.0  # after which neither page nor server grows
ANSWER_S = 15.0  # for the last answer of the page
SERVER_GROWTH_BYTES = 10e6
HEAP_GROWTH_BYTES = 3e6

pytestmark = [
    pytest.mark.soak,
    pytest.mark.timeout(3600),
    pytest.mark.skipif(CHROMIUM is None, reason="needs Debian's package chromium on the PATH"),
]


def fill(bootstrap_server: str) -> None:
    """Records, a group and a transactional id, so that their pages have something to show."""
    cluster = Cluster(bootstrap_server, {})
    create_topics(cluster)
    cluster.create_topic("rigs", 1)
    producer = Producer({"bootstrap.servers": bootstrap_server, "transactional.id": TRANSACTION})
    producer.init_transactions(60)
    producer.begin_transaction()
    for number in range(1000):
        producer.produce(TOPIC, b'{"pump": 7, "pressure": 101.5}', str(number), partition=0)
    producer.commit_transaction(60)
    consumer = Consumer({"bootstrap.servers": bootstrap_server, "group.id": GROUP})
    consumer.commit(offsets=[TopicPartition(TOPIC, 0, 500)], asynchronous=False)
    consumer.close()


def largest_memory(process: psutil.Process, seconds: float) -> int:
    """In bytes, of a process that is looked at for some time."""
    found: list[int] = []
    until_s = time.monotonic() + seconds
    while time.monotonic() < until_s:
        found.append(process.memory_info().rss)
        time.sleep(0.5)  # a poll's pause
    return max(found)


class PageTimes(NamedTuple):
    served_s: float  # by the server
    painted_s: float  # by the browser, from the start of the navigation


def visit(page: Page, path: str) -> PageTimes:
    response = page.goto(path, wait_until="commit")
    assert response is not None
    assert response.status == 200, path
    painted_ms = page.evaluate(PAINT)
    return PageTimes(page.evaluate(SERVED) / 1000, painted_ms / 1000)


def measure_pages(bootstrap_server: str) -> list[str]:
    """Prints the times of all pages; returns those that are slower than they should be."""
    slow = []
    with console_process(bootstrap_server) as (address, process), open_browser() as browser:
        wait_for_topics(Visitor(address), TOPICS + 1)
        for path in PATHS:
            with open_page(browser, address) as page:
                first = visit(page, path)
                times = [visit(page, path) for _ in range(ROUNDS)]
            painted_s = statistics.median(each.painted_s for each in times)
            served_s = statistics.median(each.served_s for each in times)
            print(
                f"{path:44} first paint: median {painted_s * 1000:5.0f} ms, first {first.painted_s * 1000:5.0f} ms; "
                f"served: median {served_s * 1000:4.0f} ms, first {first.served_s * 1000:4.0f} ms"
            )
            slow += [path] if painted_s > FIRST_PAINT_S or served_s > SERVED_S else []
        print(f"memory with {TOPICS:,} topics × {PARTITIONS} partitions: {process.memory_info().rss / 1e6:.0f} MB")
    return slow


def measure_idle_memory(bootstrap_server: str) -> int:
    with console_process(bootstrap_server) as (address, process):
        Visitor(address).get("/")
        idle = largest_memory(process, IDLE_S)
        print(f"\nmemory of an idle console: {idle / 1e6:.0f} MB")
    return idle


def test_pages_are_painted_quickly(odradek_broker: RunningBroker) -> None:
    idle = measure_idle_memory(odradek_broker.bootstrap_servers)
    fill(odradek_broker.bootstrap_servers)
    assert not measure_pages(odradek_broker.bootstrap_servers)
    assert idle <= IDLE_BYTES


def heap_and_nodes(page: Page, session: CDPSession) -> tuple[int, int]:
    """Bytes of the JavaScript heap after a collection of garbage, and nodes of the document."""
    session.send("HeapProfiler.collectGarbage")
    used: int = session.send("Runtime.getHeapUsage")["usedSize"]
    nodes: int = page.evaluate("document.getElementsByTagName('*').length")
    return used, nodes


def test_a_live_tail_grows_neither_page_nor_server(odradek_broker: RunningBroker) -> None:
    cluster = Cluster(odradek_broker.bootstrap_servers, {})
    cluster.create_topic("fast", 3)
    with (
        console_process(odradek_broker.bootstrap_servers) as (address, process),
        open_browser() as browser,
        open_page(browser, address) as page,
        loading(cluster, "fast") as sent,
    ):
        page.goto("/topics/fast/messages")
        page.click("[data-tail-switch]")
        page.locator("table.records tbody tr").nth(299).wait_for()
        session = page.context.new_cdp_session(page)
        began_s, began_sent = time.monotonic(), sent()
        measured = []
        for at_s in range(0, int(TAIL_S) + 1, 10):
            page.wait_for_timeout(max(0.0, began_s + at_s - time.monotonic()) * 1000)
            heap, nodes = heap_and_nodes(page, session)
            all_nodes = session.send("Memory.getDOMCounters")["nodes"]
            measured.append((at_s, process.memory_info().rss, heap, nodes, all_nodes))
        took_s = time.monotonic() - began_s  # much longer than TAIL_S if events pile up in the page
        rate = (sent() - began_sent) / took_s
        print(f"\n{rate:,.0f} records/s written; {page.locator('[data-stream-status]').text_content()}")
        for at_s, rss, heap, nodes, all_nodes in measured:
            memory = f"server {rss / 1e6:5.1f} MB, heap {heap / 1e6:5.2f} MB"
            print(f"{at_s:4} s: {memory}, {nodes} elements, {all_nodes} nodes")
    settled = next(each for each in measured if each[0] >= SETTLED_S)
    last = measured[-1]
    assert last[1] - settled[1] < SERVER_GROWTH_BYTES
    assert last[2] - settled[2] < HEAP_GROWTH_BYTES
    assert last[3] <= settled[3] * 1.1
    assert rate > 9_000
    assert took_s < TAIL_S + ANSWER_S
