"""Pictures of every page, light, dark and on a phone: `python -m tests.console.screenshots DIRECTORY`.

Three brokers with the contents of `pictured_cluster`; the last picture is of a broker that was killed. With
`-b HOST:PORT` pictures are taken of that cluster instead, such as the one of `make up`, with its pipelines and rigs.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from odradek.console.settings import SaslLogin
from odradek.testing import cluster
from tests.console.browsing import open_browser
from tests.console.conftest import running_console
from tests.console.pictured_cluster import GROUP, IDLE_GROUP, PROPERTIES, TRANSACTION, pictured

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

PATIENCE_MS = 60_000
INTERVAL_S = 2.0  # as users have it: with a shorter one lines are ragged
SHORTEST_PX = 520  # the menu and its foot
LONGEST_PX = 4_000  # of longer pages the first screen is shown
# The menu is as high as the window: for a picture of the whole page it gets the height of the page.
GROW_MENU = """() => {
  const menu = document.querySelector(".side-inner");
  if (menu && innerWidth > 760) menu.style.height = `${document.documentElement.scrollHeight}px`;
}"""
BOTTOM_PX = """() => {
  const main = document.querySelector("main");
  return Math.ceil(main.lastElementChild.getBoundingClientRect().bottom + scrollY + 32);
}"""


class Screen(NamedTuple):
    name: str
    settings: dict[str, Any]


SCREENS = (
    Screen("light", {"viewport": {"width": 1280, "height": 800}, "color_scheme": "light"}),
    Screen("dark", {"viewport": {"width": 1280, "height": 800}, "color_scheme": "dark"}),
    Screen("phone", {"viewport": {"width": 390, "height": 844}, "color_scheme": "light"}),
)
QUESTION = "principal=User%3Areports&operation=Write&kind=topic&name=orders"
PAGES = {
    "overview": "/",
    "topics": "/topics",
    "new-topic": "/new-topic",
    "topic": "/topics/orders/partitions",
    "topic-groups": "/topics/orders/groups",
    "settings": "/topics/orders/settings?q=retention",
    "records": "/topics/orders",
    "search": "/topics/orders?start=oldest&field=json&name=%24.amount&comparison=greater&text=95",
    "groups": "/groups",
    "group": f"/group?name={GROUP}",
    "brokers": "/brokers",
    "transactions": "/transactions",
    "transaction": f"/transaction?id={TRANSACTION}",
    "pipelines": "/pipelines",
    "users": "/access",
    "user": "/access/user?name=billing",
    "rules": "/access/rules",
    "check": f"/access/check?{QUESTION}",
    "quotas": "/access/quotas",
    "not-found": "/nowhere",
}
PAGES_OF_THE_DEMO = {
    "rigs": "/examples/rigs",
    "pipelines": "/pipelines",
    "dead-letters": "/dead-letters?topic=rigs-dead-letters",
    "demo-overview": "/",
    "demo-topics": "/topics",
}


def open_screen(browser: Browser, address: str, screen: Screen) -> Page:
    context = browser.new_context(base_url=address, **screen.settings)
    context.set_default_timeout(PATIENCE_MS)
    return context.new_page()


def await_history(browser: Browser, seconds: float) -> None:
    """Until the charts have lines."""
    browser.new_page().wait_for_timeout(seconds * 1000)


def shoot(page: Page, target: Path) -> None:
    """The whole page, without the empty space below a short one."""
    page.wait_for_timeout(2500)  # charts and streams have begun
    size = page.viewport_size
    assert size is not None
    shown_px = min(max(page.evaluate(BOTTOM_PX), SHORTEST_PX), size["height"])
    page.set_viewport_size({"width": size["width"], "height": shown_px})
    is_long = page.evaluate("document.documentElement.scrollHeight") > LONGEST_PX
    if not is_long:
        page.evaluate(GROW_MENU)
    page.screenshot(path=target, full_page=not is_long)
    page.set_viewport_size(size)
    print(target, flush=True)


def take(browser: Browser, address: str, pages: dict[str, str], directory: Path) -> None:
    for screen in SCREENS:
        page = open_screen(browser, address, screen)
        for name, path in pages.items():
            page.goto(path)
            shoot(page, directory / f"{name}-{screen.name}.png")
        page.context.close()


def take_records(browser: Browser, address: str, directory: Path) -> None:
    """The live tail, a record in its drawer, and the help."""
    for screen in SCREENS:
        page = open_screen(browser, address, screen)
        page.goto(PAGES["records"])
        page.click("[data-tail-switch]")
        page.wait_for_timeout(4000)
        page.screenshot(path=directory / f"tail-{screen.name}.png")
        page.click("[data-tail-switch]")
        page.click("a[data-record] >> nth=0")
        page.wait_for_selector("#record-dialog[open] pre")
        page.screenshot(path=directory / f"record-{screen.name}.png")
        page.keyboard.press("Escape")
        page.keyboard.press("?")
        page.wait_for_selector("#help[open]")
        page.screenshot(path=directory / f"help-{screen.name}.png")
        page.context.close()


def take_reset(browser: Browser, address: str, directory: Path) -> None:
    """The preview, of a group without members."""
    for screen in SCREENS:
        page = open_screen(browser, address, screen)
        page.goto(f"/group/reset?name={IDLE_GROUP}")
        page.click("button:has-text('Preview')")
        page.wait_for_selector("th:has-text('After')")
        shoot(page, directory / f"reset-{screen.name}.png")
        page.context.close()


def take_pipeline(browser: Browser, address: str, directory: Path) -> None:
    for screen in SCREENS:
        page = open_screen(browser, address, screen)
        page.goto("/pipelines")
        page.click("table a >> nth=0")
        page.wait_for_selector("svg.graph")
        shoot(page, directory / f"pipeline-{screen.name}.png")
        page.context.close()


def take_redrive(browser: Browser, address: str, directory: Path) -> None:
    """The preview of what is written back."""
    for screen in SCREENS:
        page = open_screen(browser, address, screen)
        page.goto(PAGES_OF_THE_DEMO["dead-letters"])
        page.click("button:has-text('Redrive all')")
        page.wait_for_selector("h2:has-text('Preview')")
        shoot(page, directory / f"redrive-{screen.name}.png")
        page.context.close()


def take_login(browser: Browser, bootstrap_servers: str, directory: Path) -> None:
    """The page alone: no user logs in."""
    with running_console(bootstrap_servers, {"security.protocol": "SASL_PLAINTEXT"}, login=SaslLogin()) as address:
        take(browser, address, {"login": "/login"}, directory)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory", type=Path)
    parser.add_argument("-b", "--bootstrap-server")
    parser.add_argument("--history", type=float, default=150.0, help="seconds that the charts show")
    given = parser.parse_args()
    directory: Path = given.directory
    directory.mkdir(parents=True, exist_ok=True)
    if given.bootstrap_server:
        with (
            running_console(given.bootstrap_server, sample_interval_s=INTERVAL_S) as address,
            open_browser() as browser,
        ):
            await_history(browser, given.history)
            take(browser, address, PAGES_OF_THE_DEMO, directory)
            take_pipeline(browser, address, directory)
            take_redrive(browser, address, directory)
        return
    with (
        cluster(properties=PROPERTIES) as running,
        pictured(running.bootstrap_servers),
        running_console(running.bootstrap_servers, sample_interval_s=INTERVAL_S) as address,
        open_browser() as browser,
    ):
        await_history(browser, given.history)
        take(browser, address, PAGES, directory)
        take_records(browser, address, directory)
        take_reset(browser, address, directory)
        take_login(browser, running.bootstrap_servers, directory)
        running.kill(3)
        page = open_screen(browser, address, SCREENS[0])
        page.goto("/")
        page.wait_for_selector("text=1 broker fenced")
        shoot(page, directory / "killed-light.png")


if __name__ == "__main__":
    main()
