"""Pipelines, dead letters and rigs in a real browser: they move, are accessible, and a redrive needs a confirmation."""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from odradek.admin.cluster import Cluster
from odradek.pipelines.letters.letter import WITH_ORIGIN
from odradek.pipelines.operating.status_record import TOPIC, TOPIC_CONFIG, encode
from tests.console.browsing import faults_of, set_visible
from tests.console.test_browser import browser, page
from tests.console.test_browser import pytestmark as needs_chromium
from tests.console.test_examples import reading, warning
from tests.console.test_pipelines import published
from tests.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Page

__all__ = ["browser", "page"]

pytestmark = [pytest.mark.more, needs_chromium]

NAME = "watched"


@contextmanager
def living_cluster(bootstrap_server: str) -> Iterator[Cluster]:
    """Pumps with readings and warnings, and a pipeline that publishes its status."""
    cluster = Cluster(bootstrap_server, {})
    cluster.create_topic(TOPIC, 1, configs=TOPIC_CONFIG)
    for name, partitions in (("rigs", 2), ("warnings", 1), (f"{NAME}-dead", 1)):
        cluster.create_topic(name, partitions)
    producer = cluster.producer({})
    is_over = threading.Event()

    def live() -> None:
        turn = 0
        while not is_over.wait(0.25):
            turn += 1
            for pump in range(1, 41):
                producer.produce("rigs", reading(pump, 90 + (turn * pump) % 30), str(pump).encode())
            producer.produce("warnings", warning(7, "pressure high", time.time()), b"7")
            key, value = encode(published(NAME, time.time(), 100 * turn))
            producer.produce(TOPIC, value, key)
            producer.flush(5)

    thread = threading.Thread(target=live, daemon=True)
    thread.start()
    try:
        yield cluster
    finally:
        is_over.set()
        thread.join()


@pytest.fixture(scope="module")
def living(bootstrap_server: str) -> Iterator[Cluster]:
    with living_cluster(bootstrap_server) as cluster:
        yield cluster


def wait_for_rigs(page: Page) -> None:
    """Until the console has seen the topics: before, it has no page of the rigs."""
    eventually(lambda: page.goto("/") and page.locator('nav a[href="/examples"]').count())


def test_the_rigs_move_and_a_pump_can_be_chosen(page: Page, living: Cluster) -> None:
    wait_for_rigs(page)
    page.click('nav a[href="/examples"]')
    page.wait_for_selector(".entity.red input[value='7']", state="attached")
    page.wait_for_selector("[data-episodes] a:text-is('pump 7')")
    page.check("input[name=entity][value='12']", force=True)
    page.wait_for_selector("[data-chosen]:text-is('12')")
    page.wait_for_selector("[data-chart] output:not(:text-is('–'))")
    turns = int(page.get_attribute("[data-example]", "data-turns") or 0)
    page.wait_for_selector(f"[data-example][data-turns='{turns + 3}']")


def test_readings_are_not_doubled_by_a_new_connection(page: Page, living: Cluster) -> None:
    wait_for_rigs(page)
    page.goto("/examples/rigs?entity=7")
    page.wait_for_selector("[data-example]")

    def counted(name: str) -> int:
        return int(page.get_attribute("[data-example]", f"data-{name}") or 0)

    eventually(lambda: counted("points") >= 5)
    points, turns = counted("points"), counted("turns")
    began_at = time.monotonic()
    set_visible(page, is_visible=False)
    set_visible(page, is_visible=True)
    eventually(lambda: counted("turns") >= turns + 3)
    passed_s = time.monotonic() - began_at
    assert counted("points") <= points + passed_s + 2


def test_a_pipeline_is_drawn_with_figures_that_move(page: Page, living: Cluster) -> None:
    page.goto("/pipelines")
    page.click(f"text={NAME}")
    page.wait_for_selector("svg.graph .graph-node.sink")
    page.wait_for_selector("[data-chart=processed] output:not(:text-is('–'))")
    page.wait_for_selector("text=rows/s")
    assert page.locator(".graph-node").count() == 5


def test_dead_letters_are_redriven_after_a_confirmation(page: Page, living: Cluster) -> None:
    values = (b"not JSON: <img src=x onerror=\"document.title='owned'\">", b"p", b"s", b"rigs", b"0:1", b"id")
    producer = living.producer({})
    for number in range(3):
        headers: list[tuple[str, str | bytes | None]] = [*zip(WITH_ORIGIN, values, strict=True)]
        producer.produce(f"{NAME}-dead", b"<script>document.title='owned'</script>%d" % number, headers=headers)
    producer.flush(30)
    page.goto(f"/dead-letters?topic={NAME}-dead")
    assert page.locator("[data-needs-selection]").is_disabled()
    page.check("input[name=record] >> nth=0")
    page.click("text=Redrive selection")
    page.wait_for_selector("text=Preview: 1 dead letter,")
    page.click("button:has-text('Redrive 1 record')")
    page.wait_for_selector("text=Wrote 1 dead letter back: 1 to rigs.")
    assert page.locator(".tag.good").count() == 1
    page.click("text=Redrive all that match")
    page.wait_for_selector("text=Preview: 2 dead letters,")
    assert page.evaluate("document.title") == "Redrive · Odradek"


@pytest.mark.soak
def test_the_pages_are_accessible_and_fit_a_phone(page: Page, living: Cluster) -> None:
    faults: list[str] = []
    reason = b"expectation 'a pressure that is plausible for a pump of this kind and age' not met: " + b"pressure " * 30
    living.create_topic(f"{NAME}-long", 1)
    producer = living.producer({})
    headers: list[tuple[str, str | bytes | None]] = [
        *zip(WITH_ORIGIN, (reason, b"p", b"s", b"rigs", b"0:1", b"id"), strict=True)
    ]
    producer.produce(f"{NAME}-long", b"{}" * 100, headers=headers)
    producer.flush(30)
    paths = ("/", "/examples/rigs", "/pipelines", f"/pipeline?key={NAME}@machine-7", f"/dead-letters?topic={NAME}-long")
    page.goto("/pipelines")
    page.wait_for_selector(f"text={NAME}")
    for theme in ("light", "dark"):
        page.emulate_media(color_scheme=theme)
        for path in paths:
            page.goto(path)
            faults += faults_of(page, f"{theme} {path}")
    page.set_viewport_size({"width": 390, "height": 844})
    for path in paths:
        page.goto(path)
        width = page.evaluate("document.documentElement.scrollWidth")
        faults += [f"{path} is {width} pixels wide"] if width > 390 else []
    assert not faults, "\n".join(faults)
