"""What a browser measures: the first paint of every page with many topics, and the memory of a live tail.

CONSOLE_TOPICS=10000 CONSOLE_PARTITIONS=10 pytest -s --suite soak tests/console/test_paint.py

Prints what it measures. `first-contentful-paint` is counted from the start of the navigation. A first visit is one of a
new browser profile: its cache is empty, it has no connection, and chromium starts a process for it. Later visits find
the console's files in the cache. Both have the same limit, for the median of several.
"""

from __future__ import annotations

import os
import statistics
import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, NamedTuple

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from odradek.admin.cluster import Cluster
from odradek.admin.users import set_password
from odradek.pipelines.letters.letter import WITH_ORIGIN
from odradek.pipelines.operating.status_record import TOPIC as STATUS_TOPIC
from odradek.pipelines.operating.status_record import TOPIC_CONFIG, encode
from tests.console.browsing import CHROMIUM, open_browser, open_page
from tests.console.conftest import Visitor
from tests.console.test_pipelines import published
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
    from collections.abc import Iterator

    import psutil
    from playwright.sync_api import Browser, CDPSession, Page

    from odradek.testing import RunningBroker

TOPIC = "speed-7"
GROUP = "speed-group"
WIDE_GROUP = "speed-wide"  # it has committed an offset of each partition of these topics
WIDE_TOPICS = min(TOPICS, 1000)
PIPELINE, DEAD_LETTERS = "speed-pipeline", "speed-pipeline-dead"
TRANSACTION = "speed-transaction"
PATHS = ("/", "/topics", "/topics?q=99&sort=records&down=1", "/new-topic", f"/topics/{TOPIC}",
         f"/topics/{TOPIC}/settings", f"/topics/{TOPIC}/partitions", f"/topics/{TOPIC}/record?partition=0&offset=0",
         "/groups", f"/group?name={GROUP}", f"/group?name={WIDE_GROUP}", f"/group/reset?name={GROUP}", "/brokers",
         "/transactions", f"/transaction?id={TRANSACTION}", "/pipelines", f"/pipeline?key={PIPELINE}%40machine-7",
         f"/dead-letters?topic={DEAD_LETTERS}", "/examples/rigs", "/access", "/access/user?name=alice", "/access/rules",
         "/access/check", "/access/quotas")  # fmt: skip
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
FIRST_VISITS, LATER_VISITS = 3, 5
COMMITTED_AT_ONCE = 5000
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
    """Records, groups, a transactional id, a pipeline and a user, so that their pages have something to show."""
    cluster = Cluster(bootstrap_server, {})
    create_topics(cluster)
    cluster.create_topic("rigs", 1)
    set_password(cluster, "alice", "the secret of alice", {"SCRAM-SHA-512": 4096})
    producer = Producer({"bootstrap.servers": bootstrap_server, "transactional.id": TRANSACTION})
    producer.init_transactions(60)
    producer.begin_transaction()
    for number in range(1000):
        producer.produce(TOPIC, b'{"pump": 7, "pressure": 101.5}', str(number), partition=0)
    producer.commit_transaction(60)
    commit(bootstrap_server, GROUP, [TopicPartition(TOPIC, 0, 500)])
    commit(bootstrap_server, WIDE_GROUP, [
        TopicPartition(f"speed-{topic}", index, 0) for topic in range(WIDE_TOPICS) for index in range(PARTITIONS)
    ])  # fmt: skip
    publish_pipeline(cluster)


def commit(bootstrap_server: str, group: str, offsets: list[TopicPartition]) -> None:
    consumer = Consumer({"bootstrap.servers": bootstrap_server, "group.id": group})
    for first in range(0, len(offsets), COMMITTED_AT_ONCE):
        consumer.commit(offsets=offsets[first : first + COMMITTED_AT_ONCE], asynchronous=False)
    consumer.close()


def publish_pipeline(cluster: Cluster) -> None:
    """Its status, and dead letters."""
    cluster.create_topic(STATUS_TOPIC, 1, configs=TOPIC_CONFIG)
    cluster.create_topic(DEAD_LETTERS, 1)
    producer = cluster.producer({})
    key, value = encode(published(PIPELINE, time.time()))
    producer.produce(STATUS_TOPIC, value, key)
    for number in range(500):
        origin = ("malformed JSON", PIPELINE, "readings", TOPIC, f"0:{number}", f"id-{number}")
        headers: list[tuple[str, str | bytes | None]] = [*zip(WITH_ORIGIN, origin, strict=True)]
        producer.produce(DEAD_LETTERS, b'{"pump": 7, "pressure"', str(number), headers=headers)
    assert producer.flush(60) == 0


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


def median_of(times: list[PageTimes]) -> PageTimes:
    return PageTimes(
        statistics.median(each.served_s for each in times), statistics.median(each.painted_s for each in times)
    )


class EmptyPage(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(b"<!doctype html><link rel=icon href='data:,'>empty")

    def log_message(self, *_: object) -> None: ...


@contextmanager
def empty_page() -> Iterator[str]:
    """The address of a page without files: what chromium itself takes, on a machine with this load."""
    with ThreadingHTTPServer(("127.0.0.1", 0), EmptyPage) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def visit_first(browser: Browser, address: str, path: str) -> PageTimes:
    """As somebody who has not seen the console before."""
    with open_page(browser, address) as page:
        return visit(page, path)


def visit_later(browser: Browser, address: str, path: str) -> PageTimes:
    with open_page(browser, address) as page:
        visit(page, path)
        return median_of([visit(page, path) for _ in range(LATER_VISITS)])


def measure_page(browser: Browser, address: str, path: str, title: str) -> tuple[PageTimes, PageTimes]:
    """A first visit and a later one."""
    first = median_of([visit_first(browser, address, path) for _ in range(FIRST_VISITS)])
    later = visit_later(browser, address, path)
    print(
        f"{title:44} {first.painted_s * 1000:8.0f} ms {later.painted_s * 1000:8.0f} ms "
        f"{first.served_s * 1000:9.0f} ms {later.served_s * 1000:5.0f} ms"
    )
    return first, later


def measure_pages(bootstrap_server: str) -> list[str]:
    """Prints the times of all pages; returns those that are slower than they should be."""
    slow = []
    print(f"{'page':44} {'first visit':>11} {'later visit':>11} {'served first':>12} {'later':>8}")
    with console_process(bootstrap_server) as (address, process), open_browser() as browser:
        wait_for_topics(Visitor(address), TOPICS + 2)  # rigs and dead letters
        visit_first(browser, address, "/")  # chromium reads its own files
        with empty_page() as empty_address:
            measure_page(browser, empty_address, "/", "(an empty page of another server)")
        for path in PATHS:
            first, later = measure_page(browser, address, path, path)
            is_slow = max(first.painted_s, later.painted_s) > FIRST_PAINT_S or later.served_s > SERVED_S
            slow += [path] if is_slow else []
        print(f"load average {os.getloadavg()[0]:.0f}")
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
    found: list[int] = []
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
        page.goto("/topics/fast")
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
