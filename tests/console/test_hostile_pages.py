"""Hostile texts in statuses, dead letters and records, in a real browser: none becomes an element, runs, or hides
others."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from odradek.admin.cluster import Cluster
from odradek.pipelines.letters.letter import WITH_ORIGIN
from odradek.pipelines.operating.status import ExpectationStatus, State
from odradek.pipelines.operating.status_record import TOPIC, TOPIC_CONFIG, GraphNode, PublishedPipeline, encode
from tests.console.test_browser import browser, page, pytestmark
from tests.console.test_pipelines import published
from tests.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import Callable

    from playwright.sync_api import Page

__all__ = ["browser", "page", "pytestmark"]

HIDING = "\x1b\u202e\u202c\u200b"  # of a terminal, of bidirectional text, of no width
ATTACK = (
    """</td></title></textarea>"'><img src=x onerror="window.hit=1"><script>window.hit=1</script>"""
    """<a href="javascript:window.hit=1" hx-get="/topics" hx-trigger="load" hx-target="body">x</a>{{ 7 * 191 }}"""
    f"{HIDING}"
)
SHOWN = "document.title + [...document.querySelectorAll('main [title]')].map((each) => each.title).join()"


def hostile_pipeline(name: str) -> PublishedPipeline:
    """A failing pipeline with the attack in every text."""
    given = published(name, time.time(), 5)
    flow = replace(given.status.flows[0], name=ATTACK, batch_at=ATTACK, watermark=ATTACK, lag={ATTACK: 1})
    status = replace(
        given.status,
        name=f"{name}{ATTACK}",
        state=State.WAITING,
        engine=ATTACK,
        file=ATTACK,
        note=ATTACK,
        last_error=ATTACK,
        metrics_address="javascript:window.hit=1",
        restarts=3,
        flows=(flow,),
        expectations=(ExpectationStatus("step", ATTACK, ATTACK, 1, 2), ExpectationStatus(ATTACK, "e", "drop", 1, 2)),
    )
    nodes = (
        GraphNode(ATTACK, ATTACK, ATTACK, ATTACK, (), (ATTACK,)),
        GraphNode("step", "step", "step", f"SELECT '{ATTACK}'", (ATTACK,)),
    )
    return replace(given, host=f"h{ATTACK}", status=status, nodes=nodes, facts=(ATTACK,), dead_letters=ATTACK)


def check(page: Page) -> None:
    """The attack is text, and has not run."""
    for found in ("img", "script", "[onerror]", "a[href^=javascript]", "[hx-target]"):
        assert page.locator(f"main {found}").count() == 0, found
    assert page.evaluate("window.hit") is None
    text = page.inner_text("main") + page.evaluate(SHOWN)
    assert "onerror" in text
    assert str(7 * 191) not in text
    assert not set(HIDING) & set(text)


def test_a_status_with_hostile_texts_runs_nothing(
    page: Page, bootstrap_server: str, new_name: Callable[[], str]
) -> None:
    cluster = Cluster(bootstrap_server, {})
    cluster.create_topic(TOPIC, 1, configs=TOPIC_CONFIG)
    name = new_name()
    key, value = encode(hostile_pipeline(name))
    producer = cluster.producer({})
    producer.produce(TOPIC, value, key)
    assert producer.flush(30) == 0
    try:
        eventually(lambda: page.goto("/pipelines") and page.locator(f"a:has-text('{name}')").count())
        check(page)
        eventually(lambda: page.goto("/") and page.locator(f"a:has-text('{name}')").count())
        check(page)
        page.click(f"a:has-text('{name}')")
        page.wait_for_selector("svg.graph")
        with page.expect_response("**/pipeline/panel*"):  # the fragment that replaces the panel
            pass
        check(page)
    finally:
        producer.produce(TOPIC, None, key)  # other tests see the same broker
        producer.flush(30)


def test_dead_letters_and_live_records_with_hostile_texts_run_nothing(page: Page, topic: str, produce: Any) -> None:
    attack = ATTACK.encode()
    values = (attack, attack, attack, attack, b"0:1", attack)
    headers = [*zip(WITH_ORIGIN, values, strict=True), (ATTACK.replace("\x1b", ""), attack)]
    produce(topic, (attack, attack), partition=0, headers=headers)
    page.goto(f"/dead-letters?topic={topic}")
    check(page)
    page.goto(f"/topics/{topic}/record?partition=0&offset=0")
    check(page)
    page.goto(f"/topics/{topic}")
    page.click("[data-tail-switch]")
    page.wait_for_selector("[data-tail-switch][aria-pressed=true]")
    rows = page.locator("table.records tbody tr").count()
    while page.locator("table.records tbody tr").count() <= rows:  # the tail may begin after the first record
        produce(topic, (attack, attack), partition=0, headers=headers)
        page.wait_for_timeout(200)
    check(page)
