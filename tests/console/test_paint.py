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
DOCUMENT_NODES = """(() => {
  const walker = document.createTreeWalker(document, NodeFilter.SHOW_ALL);
  let found = 1;
  while (walker.nextNode()) found += 1;
  return found;
})()"""
SERVED_S = 0.1 if TOPICS <= 1000 else 0.5  # from the request to the first byte
ROUNDS = 5
IDLE_S = 10.0
TAIL_S = 120.0
SETTLED_S = 30.0  # after which neither page nor server grows
ANSWER_S = 15.0  # for the last answer of the page
SERVER_GROWTH_BYTES = 10e6
HEAP_GROWTH_BYTES = 3e6
COLLECTIONS = 10

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


class TailMemory(NamedTuple):
    at_s: int
    server_bytes: int
    heap_bytes: int  # of JavaScript, after a collection of garbage
    document_nodes: int  # with the white space between elements
    nodes: int  # in the memory of the browser, with removed ones that it has not freed


def tail_memory(at_s: int, process: psutil.Process, page: Page, session: CDPSession) -> TailMemory:
    session.send("HeapProfiler.collectGarbage")
    return TailMemory(
        at_s,
        process.memory_info().rss,
        session.send("Runtime.getHeapUsage")["usedSize"],
        page.evaluate(DOCUMENT_NODES),
        session.send("Memory.getDOMCounters")["nodes"],
    )


def nodes_after_pause(page: Page, session: CDPSession) -> int:
    """Those in the memory of the browser when it has freed the removed rows, which takes it several collections."""
    page.click("[data-tail-switch]")
    found = []
    for _ in range(COLLECTIONS):
        page.wait_for_timeout(500)
        session.send("HeapProfiler.collectGarbage")
        found.append(session.send("Memory.getDOMCounters")["nodes"])
    return min(found)


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
            measured.append(tail_memory(at_s, process, page, session))
        took_s = time.monotonic() - began_s  # much longer than TAIL_S if events pile up in the page
        rate = (sent() - began_sent) / took_s
        print(f"\n{rate:,.0f} records/s written; {page.locator('[data-stream-status]').text_content()}")
        for each in measured:
            memory = f"server {each.server_bytes / 1e6:5.1f} MB, heap {each.heap_bytes / 1e6:5.2f} MB"
            print(f"{each.at_s:4} s: {memory}, {each.document_nodes} nodes of the document, {each.nodes} in memory")
        freed_nodes = nodes_after_pause(page, session)
        print(f"after a pause: {freed_nodes} nodes in memory")
    settled = next(each for each in measured if each.at_s >= SETTLED_S)
    later = [each for each in measured if each.at_s > settled.at_s]
    assert max(each.server_bytes for each in later) - settled.server_bytes < SERVER_GROWTH_BYTES
    assert max(each.heap_bytes for each in later) - settled.heap_bytes < HEAP_GROWTH_BYTES
    assert max(each.document_nodes for each in later) <= settled.document_nodes * 1.1
    assert freed_nodes <= settled.document_nodes * 2  # removed rows are referenced by nothing
    assert rate > 9_000
    assert took_s < TAIL_S + ANSWER_S
