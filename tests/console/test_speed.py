"""How fast pages come and how much memory the console takes, over a broker with many topics. Prints what it measures.

CONSOLE_TOPICS=10000 CONSOLE_PARTITIONS=10 pytest -s --suite soak tests/console/test_speed.py
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import threading
import time
import urllib.request
from contextlib import contextmanager
from typing import TYPE_CHECKING

import psutil
import pytest
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]  # not in __all__

from odradek.admin.cluster import Cluster
from tests.console.conftest import Visitor
from tests.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from odradek.testing import RunningBroker

TOPICS = int(os.environ.get("CONSOLE_TOPICS", "1000"))
PARTITIONS = int(os.environ.get("CONSOLE_PARTITIONS", "3"))
FIRST_PAINT_S = 0.3 if TOPICS <= 1000 else 1.0
IDLE_BYTES = 80e6
TAIL_PER_S = 10_000
TAIL_S = 30.0
GROWTH_BYTES = 25e6
PATHS = ("/", "/topics", "/topics?q=99&sort=records&down=1", "/topics/speed-7/partitions", "/topics/speed-7", "/groups",
         "/brokers", "/transactions", "/pipelines")  # fmt: skip

pytestmark = [pytest.mark.soak, pytest.mark.timeout(1800)]


@contextmanager
def console_process(bootstrap_server: str) -> Iterator[tuple[str, psutil.Process]]:
    """`odradek console` as its users run it."""
    command = [sys.executable, "-m", "odradek", "console", "-b", bootstrap_server, "--listen", "127.0.0.1:0"]
    with subprocess.Popen([*command, "--format", "json"], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        try:
            yield json.loads(process.stdout.readline())["console"], psutil.Process(process.pid)
        finally:
            process.terminate()


def create_topics(cluster: Cluster) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    for first in range(0, TOPICS, 100):
        new = [NewTopic(f"speed-{number}", PARTITIONS, 1) for number in range(first, min(first + 100, TOPICS))]
        for future in admin.create_topics(new, request_timeout=300).values():
            future.result()


def test_pages_come_quickly_and_the_console_is_small(odradek_broker: RunningBroker) -> None:
    cluster = Cluster(odradek_broker.bootstrap_servers, {})
    create_topics(cluster)
    with console_process(odradek_broker.bootstrap_servers) as (address, process):
        visitor = Visitor(address)
        wait_for_topics(visitor)
        slow = []
        for path in PATHS:
            times = []
            for _ in range(5):
                began_s = time.perf_counter()
                assert visitor.get(path).status == 200
                times.append(time.perf_counter() - began_s)
            median_s = statistics.median(times)
            print(f"{path:36} median {median_s * 1000:6.0f} ms, first {times[0] * 1000:6.0f} ms")
            slow += [path] if median_s > FIRST_PAINT_S else []
        memory = process.memory_info().rss
        print(f"memory with {TOPICS:,} topics × {PARTITIONS} partitions: {memory / 1e6:.0f} MB")
        assert not slow
        assert memory < IDLE_BYTES or TOPICS > 1000


def wait_for_topics(visitor: Visitor, topics: int = TOPICS) -> None:
    eventually(lambda: f"of {topics:,}" in visitor.get("/topics").text, seconds=300, pause_s=0.5)


@contextmanager
def loading(cluster: Cluster, topic: str) -> Iterator[Callable[[], int]]:
    """Writes TAIL_PER_S records a second; gives how many were handed to the producer."""
    is_over = threading.Event()
    producer = cluster.producer({"linger.ms": 20, "queue.buffering.max.messages": 100_000})
    sent = 0

    def load() -> None:
        nonlocal sent
        began_s = time.monotonic()
        while not is_over.wait(0.02):
            due = int((time.monotonic() - began_s) * TAIL_PER_S)
            while sent < due:
                producer.produce(topic, b'{"pump": 7, "pressure": 101.5, "temperature": 30.1}', b"7")
                sent += 1
            producer.poll(0)
        producer.flush(30)

    thread = threading.Thread(target=load)
    thread.start()
    try:
        yield lambda: sent
    finally:
        is_over.set()
        thread.join()


def test_a_live_tail_does_not_grow_the_console(odradek_broker: RunningBroker) -> None:
    cluster = Cluster(odradek_broker.bootstrap_servers, {})
    cluster.create_topic("fast", 3)
    with console_process(odradek_broker.bootstrap_servers) as (address, process), loading(cluster, "fast") as sent:
        with urllib.request.urlopen(f"{address}topics/fast/tail", timeout=60) as events:
            received = last = 0
            memory: list[int] = []
            began_s, began_sent = time.monotonic(), sent()
            for line in events:
                received += len(line)
                if line.startswith(b"data:"):
                    last = json.loads(line[5:])["seen"]
                    memory.append(process.memory_info().rss)
                if time.monotonic() - began_s > TAIL_S:
                    break
        written = sent() - began_sent
        settled = memory[len(memory) // 3]
        print(
            f"{written / TAIL_S:,.0f} records/s written, {last / TAIL_S:,.0f} seen, "
            f"{received / TAIL_S / 1000:.0f} KB/s to the page, "
            f"memory {settled / 1e6:.0f} → {memory[-1] / 1e6:.0f} MB, largest {max(memory) / 1e6:.0f} MB"
        )
        assert memory[-1] - settled < GROWTH_BYTES
        assert received / TAIL_S < 1e6
