"""Debian's chromium, driven by playwright, and the checks that several tests make with it."""

from __future__ import annotations

import shutil
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser, Page

AXE = Path(__file__).parent / "axe" / "axe.min.js"
CHROMIUM = shutil.which("chromium")
# The pages of an address bar, which nobody sees, would take most of the processor time of every window.
ADDRESS_BAR = ("WebUIOmniboxPopup", "WebUIOmniboxAimPopup", "WebUIOmniboxFullPopup")
LEFT_OUT_BY_PLAYWRIGHT = (  # repeated, because chromium obeys the last --disable-features only
    "AimEnabled,AvoidCorsURLLoaderRestartOnRedirect,AvoidUnnecessaryBeforeUnloadCheckSync,DestroyProfileOnBrowserClose,"
    "HttpsFirstBalancedModeAutoEnable,HttpsUpgrades,LensOverlay,MediaRouter,NetworkTimeServiceQuerying,"
    "OptimizationHints,PaintHolding,PreconnectToSearch,ThirdPartyStoragePartitioning"
)
ARGUMENTS = ("--no-sandbox", f"--disable-features={','.join(ADDRESS_BAR)},{LEFT_OUT_BY_PLAYWRIGHT}")
PATIENCE_MS = 60_000
SERIOUS = {"serious", "critical"}


@contextmanager
def open_browser() -> Iterator[Browser]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield browser
        browser.close()


@contextmanager
def open_page(browser: Browser, address: str, **settings: Any) -> Iterator[Page]:
    """A page in a browser without a past. What the browser reports as an error fails the test."""
    context = browser.new_context(base_url=address, viewport={"width": 1280, "height": 800}, **settings)
    context.set_default_timeout(PATIENCE_MS)
    page = context.new_page()
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("console", lambda line: problems.append(line.text) if line.type == "error" else None)
    yield page
    context.close()
    assert not problems, problems


def set_visible(page: Page, *, is_visible: bool) -> None:
    """What a page sees when its tab is left, or shown again; chromium without a window has no hidden tabs."""
    page.evaluate(
        """isHidden => {
            Object.defineProperty(document, "hidden", { configurable: true, get: () => isHidden });
            document.dispatchEvent(new Event("visibilitychange"));
        }""",
        not is_visible,
    )


def faults_of(page: Page, label: str) -> list[str]:
    """Serious faults that axe-core finds."""
    page.evaluate(AXE.read_text())  # evaluated through the debugger, which the policy does not concern
    found: dict[str, Any] = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    return [
        f"{label}: {each['id']}: {node['target']} {node['failureSummary']}"
        for each in found["violations"]
        if each["impact"] in SERIOUS
        for node in each["nodes"]
    ]
