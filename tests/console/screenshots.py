"""Pictures of every page, light, dark and on a phone: `python -m tests.console.screenshots DIRECTORY`.

Three brokers with topics, a group that lags, and a transaction; the last picture is of a broker that was killed. With
`-b HOST:PORT` pictures are taken of that cluster instead, such as the one of `make up`, with its pipelines and rigs.
"""

from __future__ import annotations

import argparse
import json
import random
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from confluent_kafka import Consumer, Producer

from odradek.cli.client.cluster import Cluster
from odradek.testing import cluster
from tests.console.browsing import open_browser
from tests.console.conftest import running_console

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser, Page

TOPICS = {"orders": 12, "payments": 4, "audit.log": 1, "customers": 3}
GROUP, TRANSACTION = "billing", "billing-1"
PROPERTIES = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}
HISTORY_S = 75.0
PATIENCE_MS = 60_000


class Screen(NamedTuple):
    name: str
    settings: dict[str, Any]


SCREENS = (
    Screen("light", {"viewport": {"width": 1280, "height": 800}, "color_scheme": "light"}),
    Screen("dark", {"viewport": {"width": 1280, "height": 800}, "color_scheme": "dark"}),
    Screen("phone", {"viewport": {"width": 390, "height": 844}, "color_scheme": "light"}),
)
PAGES = {
    "overview": "/",
    "topics": "/topics",
    "new-topic": "/new-topic",
    "topic": "/topics/orders",
    "settings": "/topics/orders/settings",
    "messages": "/topics/orders/messages",
    "search": "/topics/orders/messages?start=oldest&field=json&name=%24.amount&comparison=greater&text=95",
    "groups": "/groups",
    "group": f"/group?name={GROUP}",
    "reset": f"/group/reset?name={GROUP}",
    "brokers": "/brokers",
    "transactions": "/transactions",
    "transaction": f"/transaction?id={TRANSACTION}",
    "users": "/access",
    "rules": "/access/rules",
    "check": "/access/check",
    "quotas": "/access/quotas",
}
PAGES_OF_THE_DEMO = {"overview": "/", "topics": "/topics", "pipelines": "/pipelines", "rigs": "/rigs"}


@contextmanager
def traffic(bootstrap_servers: str) -> Iterator[None]:
    """Orders and payments that are written all the time, a group that reads too few, and an open transaction."""
    for name, partitions in TOPICS.items():
        Cluster(bootstrap_servers, {}).create_topic(name, partitions)
    settings = {"bootstrap.servers": bootstrap_servers}
    is_over = threading.Event()
    drawn = random.Random(7)

    def write() -> None:
        producer, number = Producer(settings), 0
        while not is_over.wait(0.1):
            for _ in range(drawn.randint(5, 40)):
                number += 1
                order = {
                    "order": number,
                    "customer": f"c-{drawn.randint(1, 400)}",
                    "amount": drawn.randint(100, 9999) / 100,
                }
                producer.produce("orders", json.dumps(order), str(number), headers=[("source", b"shop")])
                if drawn.random() < 0.3:
                    producer.produce("payments", json.dumps({"order": number, "state": "paid"}), str(number))
            producer.poll(0)
        producer.flush(30)

    def read() -> None:
        consumer = Consumer({**settings, "group.id": GROUP, "client.id": "billing", "auto.offset.reset": "earliest"})
        consumer.subscribe(["orders", "payments"])
        while not is_over.wait(0.2):
            consumer.consume(20, timeout=0.1)
        consumer.close()

    open_transaction = Producer({**settings, "transactional.id": TRANSACTION, "transaction.timeout.ms": 900_000})
    open_transaction.init_transactions(60)
    open_transaction.begin_transaction()
    open_transaction.produce("payments", b'{"order": 1, "state": "held"}', b"1")
    open_transaction.flush(30)
    threads = [threading.Thread(target=write), threading.Thread(target=read)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        is_over.set()
        for thread in threads:
            thread.join()


def open_screen(browser: Browser, address: str, screen: Screen) -> Page:
    context = browser.new_context(base_url=address, **screen.settings)
    context.set_default_timeout(PATIENCE_MS)
    return context.new_page()


def await_history(browser: Browser) -> None:
    """Until the charts have lines."""
    browser.new_page().wait_for_timeout(HISTORY_S * 1000)


def take(page: Page, path: str, target: Path) -> None:
    page.goto(path)
    page.wait_for_timeout(2500)  # charts and streams have begun
    page.screenshot(path=target, full_page=True)
    print(target, flush=True)


def take_all(browser: Browser, address: str, pages: dict[str, str], directory: Path) -> None:
    for screen in SCREENS:
        page = open_screen(browser, address, screen)
        for name, path in pages.items():
            take(page, path, directory / f"{name}-{screen.name}.png")
        if "messages" in pages:
            page.goto(pages["messages"])
            page.click("[data-tail-switch]")
            page.wait_for_timeout(4000)
            page.screenshot(path=directory / f"tail-{screen.name}.png")
            page.click("[data-tail-switch]")
            page.click("a[data-record] >> nth=0")
            page.wait_for_selector("#record-dialog[open] pre")
            page.screenshot(path=directory / f"record-{screen.name}.png")
        page.context.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory", type=Path)
    parser.add_argument("-b", "--bootstrap-server")
    given = parser.parse_args()
    given.directory.mkdir(parents=True, exist_ok=True)
    if given.bootstrap_server:
        with running_console(given.bootstrap_server) as address, open_browser() as browser:
            await_history(browser)
            take_all(browser, address, PAGES_OF_THE_DEMO, given.directory)
        return
    with (
        cluster(properties=PROPERTIES) as running,
        traffic(running.bootstrap_servers),
        running_console(running.bootstrap_servers) as address,
        open_browser() as browser,
    ):
        await_history(browser)
        take_all(browser, address, PAGES, given.directory)
        running.kill(3)
        page = open_screen(browser, address, SCREENS[0])
        page.goto("/")
        page.wait_for_selector("text=1 broker down")
        page.screenshot(path=given.directory / "killed-light.png", full_page=True)


if __name__ == "__main__":
    main()
