"""What a newcomer sees of `odradek up`: an address, and a picture that moves soon after the broker is up."""

from __future__ import annotations

import re
import subprocess
import sys
import time

import pytest

from tests.console.browsing import CHROMIUM, open_browser, open_page

MOVES_WITHIN_S = 20.0

pytestmark = [
    pytest.mark.soak,
    pytest.mark.spark,
    pytest.mark.timeout(300),
    pytest.mark.skipif(CHROMIUM is None, reason="needs Debian's package chromium on the PATH"),
]


def test_a_picture_moves_soon_after_the_broker_is_up() -> None:
    command = [sys.executable, "-m", "odradek", "up", "--port", "0", "--console-port", "0"]
    began_s = time.monotonic()
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        assert process.stdout is not None
        try:
            broker_s, address = 0.0, ""
            for line in process.stdout:
                if not broker_s and re.search(r"127\.0\.0\.1:\d+", line):
                    broker_s = time.monotonic()
                if found := re.search(r"(http://127\.0\.0\.1:\d+/)examples/rigs", line):
                    address = found[1]
                    break
            assert address, "no address of the console was printed"
            printed_s = time.monotonic()
            with open_browser() as browser, open_page(browser, address) as page:
                page.goto("/examples/rigs")
                pressure = page.locator("[data-chart] output").first
                seen: set[str] = set()
                while len(seen - {"–"}) < 3:  # a value that has changed twice
                    assert time.monotonic() - broker_s < 120
                    seen.add(pressure.text_content() or "–")
                    page.wait_for_timeout(100)
                moved_s = time.monotonic() - broker_s
        finally:
            process.terminate()
    print(
        f"\nbroker up after {broker_s - began_s:.1f} s, address printed {printed_s - broker_s:.1f} s later, "
        f"the picture moves {moved_s:.1f} s after the broker was up"
    )
    assert moved_s < MOVES_WITHIN_S
