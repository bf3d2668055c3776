"""The console in a real browser: a topic from its creation to its end, a hostile record, and accessibility.

Debian's chromium is driven by playwright. Tests are skipped where there is none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from odradek.admin.cluster import Cluster
from tests.console.browsing import CHROMIUM, faults_of, open_browser, open_page, set_visible
from tests.console.test_pages import consume_and_commit
from tests.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from playwright.sync_api import Browser, Page, Route

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs Debian's package chromium on the PATH")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with open_browser() as browser:
        yield browser


@pytest.fixture
def page(browser: Browser, console_address: str) -> Iterator[Page]:
    with open_page(browser, console_address) as page:
        yield page


@pytest.mark.more
def test_a_live_tail_keeps_no_nodes_of_rows_that_it_removes(
    page: Page, topic: str, produce: Callable[..., None]
) -> None:
    kept_rows = 300
    page.goto(f"/topics/{topic}")
    page.click("[data-tail-switch]")
    newest = 0
    while page.locator("table.records tbody tr").count() < kept_rows or newest < 2 * kept_rows:
        produce(topic, *(b"record" for _ in range(100)), partition=0)
        page.wait_for_timeout(200)
        if page.locator("a[data-record]").count():
            newest = int((page.locator("a[data-record]").first.text_content() or "0").replace(",", ""))
    page.click("[data-tail-switch]")
    nodes = page.evaluate("document.querySelector('table.records tbody').childNodes.length")
    assert nodes <= 2 * kept_rows + 1  # each row, and the line break after it


@pytest.mark.more
def test_the_live_tail_cannot_be_switched_before_its_script_runs(page: Page, topic: str) -> None:
    held: list[Route] = []
    page.route("**/records.js*", lambda route: held.append(route))  # noqa: PLW0108 - playwright marks the function
    page.goto(f"/topics/{topic}", wait_until="commit")
    switch = page.locator("[data-tail-switch]")
    switch.wait_for()
    while not held:
        page.wait_for_timeout(10)
    assert switch.is_disabled()
    held[0].continue_()
    switch.click()
    page.wait_for_selector("[data-tail-switch][aria-pressed=true]")


def test_a_topic_from_its_creation_to_its_end(
    page: Page, bootstrap_server: str, new_name: Callable[[], str], produce: Callable[..., None]
) -> None:
    name, group = new_name(), new_name()
    page.goto("/topics")
    page.click("text=Create topic")
    page.fill("input[name=name]", name)
    page.fill("input[name=partitions]", "2")
    page.click("button:has-text('Create')")
    page.wait_for_selector(f"text=Created topic {name}")

    page.click("nav.tabs >> text=Records")
    page.click("[data-tail-switch]")
    page.wait_for_selector("[data-tail-switch]:has-text('Pause')")
    page.wait_for_selector("text=Waiting for new records")
    while not page.locator("td.value:has-text('seen live')").count():  # the tail may begin after the first record
        produce(name, ("live", "seen live"), partition=0)
        page.wait_for_timeout(200)
    page.keyboard.press("Escape")
    page.click("[data-tail-switch]")
    page.wait_for_selector("[data-tail-switch][aria-pressed=false]")

    page.fill("textarea[name=value]", '{"rig": 7, "bar": 121.5}')
    page.fill("input[name=key]", "rig-7")
    page.click("button:has-text('Write')")
    page.wait_for_selector("text=Wrote a record")
    page.click("a[data-record] >> nth=0")
    page.wait_for_selector("#record-dialog[open] pre:has-text('121.5')")
    page.keyboard.press("Escape")

    page.select_option("select[name=start]", "oldest")
    page.select_option("select[name=field]", "json")
    page.fill("input[name=name]", "$.bar")
    page.select_option("select[name=comparison]", "greater")
    page.fill("input[name=text]", "121")
    page.click("button:has-text('Read')")
    page.wait_for_selector("text=1 found in")

    consume_and_commit(bootstrap_server, name, group, 2)
    page.goto(f"/group/reset?name={group}")
    page.click("button:has-text('Preview')")
    page.wait_for_selector("text=to be read again")
    page.click("button:has-text('Apply')")
    page.wait_for_selector("text=Reset ")
    assert "records not yet read" in page.content()

    page.goto(f"/topics/{name}/partitions")
    assert page.locator("button.danger").is_disabled()
    page.fill("input[name=confirmation]", name)
    page.click("button.danger")
    page.wait_for_selector(f"text=Deleted topic {name}")
    assert not Cluster(bootstrap_server, {}).has_topic(name)


def test_a_hostile_record_does_not_run(page: Page, topic: str, produce: Callable[..., None]) -> None:
    attack = "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>{{7*7}}"
    produce(topic, (attack, attack), headers=[(attack, attack.encode())], partition=0)
    page.goto(f"/topics/{topic}")
    page.click("a[data-record]")
    page.wait_for_selector("#record-dialog[open] pre:has-text('onerror')")
    page.goto(f"/topics/{topic}?start=oldest&text=onerror")
    page.wait_for_selector("text=1 found in 1 of 1 record")
    assert page.locator("main img").count() == 0
    assert page.evaluate("document.title") == f"Records of {topic} · Odradek"
    assert "{{7*7}}" in (page.locator("td.value").first.text_content() or "")


@pytest.mark.more
def test_a_record_is_stepped_through_and_copied(page: Page, topic: str, produce: Callable[..., None]) -> None:
    produce(topic, ("k-0", '{"n":0}'), ("k-1", '{"n":1}'), partition=0)
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.goto(f"/topics/{topic}")
    page.click("a[data-record] >> nth=0")
    page.wait_for_selector("#record-dialog[open] h2:has-text('offset 1')")

    def copied(button: str) -> str:
        page.click(f"#record button:{button}")
        page.wait_for_selector("#record button:has-text('Copied')")
        page.wait_for_selector("#record button:has-text('Copied')", state="detached")
        text: str = page.evaluate("navigator.clipboard.readText()")
        return text

    assert copied("is([aria-label='Copy the value'])") == '{"n":1}'
    page.click("#record >> text=Previous")
    page.wait_for_selector("#record h2:has-text('offset 0')")
    assert copied("is([aria-label='Copy the key'])") == "k-0"
    page.click("#record >> text=Previous")
    page.wait_for_selector("#record >> text=There is no record before offset 0")
    assert not faults_of(page, "record")
    page.goto(copied("has-text('Copy link')"))
    page.wait_for_selector("h1:has-text('Record')")
    assert not faults_of(page, "page of a record")
    with page.expect_download() as download:
        page.click("text=Download JSON")
    assert download.value.suggested_filename == f"{topic}-0-0.json"


@pytest.mark.more
def test_charts_move_and_the_keyboard_works(page: Page, topic: str) -> None:
    page.goto("/")
    for chart in ("records", "bytes"):
        page.wait_for_selector(f"[data-chart={chart}] .u-over")
        page.wait_for_selector(f"[data-chart={chart}] output:not(:text-is('–'))")
    eventually(lambda: f"/topics/{topic}" in page.request.get(f"/topics?q={topic}").text())  # it has been sampled
    page.keyboard.press("?")
    page.wait_for_selector("#help[open]")
    page.keyboard.press("Escape")
    page.keyboard.press("g")
    page.keyboard.press("t")
    page.wait_for_url("**/topics")
    page.keyboard.press("/")
    page.keyboard.type(topic)
    page.wait_for_url(f"**/topics?q={topic}")
    page.wait_for_selector("#topics tbody tr:only-child")
    before = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.click("[data-theme-switch]")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != before
    page.goto("/new-topic")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != before


@pytest.mark.more
def test_pages_have_no_serious_accessibility_fault(page: Page, topic: str, produce: Callable[..., None]) -> None:
    produce(topic, ("k", '{"a": 1}'), ("k", None), partition=0)
    faults: list[str] = []
    paths = ["/", "/topics", "/new-topic", f"/topics/{topic}", f"/topics/{topic}/settings?q=retention"]
    paths += [f"/topics/{topic}/partitions", f"/topics/{topic}/groups"]
    paths += ["/groups", "/group/reset?name=g", "/brokers", "/transactions", "/nowhere"]
    context = page.context
    for theme in ("light", "dark"):
        page.emulate_media(color_scheme=theme)
        for path in paths if theme == "light" else paths[:7]:
            other = context.new_page() if path == "/nowhere" else page  # a page that is not found is an error line
            other.goto(path)
            faults += faults_of(other, f"{theme} {path}")
    assert not faults, "\n".join(faults)


@pytest.mark.more
def test_a_phone_shows_pages_without_scrolling_sideways(page: Page, topic: str) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    for path in ("/", "/topics", f"/topics/{topic}", f"/topics/{topic}/partitions", "/groups", "/brokers"):
        page.goto(path)
        width = page.evaluate("document.documentElement.scrollWidth")
        assert width <= 390, f"{path} is {width} pixels wide"


@pytest.mark.more
def test_hidden_tabs_leave_connections_to_others(page: Page) -> None:
    """A browser opens six connections to a host."""
    tabs = [page, *(page.context.new_page() for _ in range(6))]
    for tab in tabs:
        tab.goto("/")
        tab.wait_for_selector("[data-chart=records] output:not(:text-is('–'))")  # its stream is open
        set_visible(tab, is_visible=tab is tabs[-1])
    set_visible(tabs[0], is_visible=True)
    with tabs[0].expect_response("**/events/samples"):
        set_visible(tabs[0], is_visible=False)
        set_visible(tabs[0], is_visible=True)
