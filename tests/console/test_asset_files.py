"""The files that browsers load: kept by them, compressed, and nothing but the files of the wheel."""

from __future__ import annotations

import gzip
import re
from importlib.resources import files
from typing import TYPE_CHECKING

import pytest

from odradek.console.web.rendering import read_assets, version_of

if TYPE_CHECKING:
    from tests.console.conftest import Visitor


def test_an_asset_is_compressed_for_browsers_that_accept_it(visitor: Visitor) -> None:
    plain = visitor.get("/assets/vendor/htmx.min.js", Accept_Encoding="identity")
    compressed = visitor.get("/assets/vendor/htmx.min.js", Accept_Encoding="gzip, br")
    assert plain.headers["content-type"].startswith("text/javascript")
    assert "content-encoding" not in plain.headers
    assert compressed.headers["content-encoding"] == "gzip"
    assert gzip.decompress(compressed.body) == plain.body
    assert len(compressed.body) < len(plain.body) / 2


def test_an_asset_that_the_browser_has_is_not_sent_again(visitor: Visitor) -> None:
    first = visitor.get("/assets/console.css")
    assert "max-age=" in first.headers["cache-control"]
    again = visitor.get("/assets/console.css", If_None_Match=first.headers["etag"])
    assert (again.status, again.body) == (304, b"")


@pytest.mark.parametrize("path", ["../settings.py", "%2e%2e/settings.py", "/etc/passwd", "vendor", "vendor/", ""])
def test_nothing_but_assets_is_served(visitor: Visitor, path: str) -> None:
    assert visitor.get(f"/assets/{path}").status == 404


def test_every_asset_of_a_template_exists_and_has_the_version() -> None:
    assets = read_assets()
    for template in (files("odradek.console") / "templates").iterdir():
        for path, query in re.findall(r'"/assets/([\w./-]+)([^"#]*)', template.read_text()):
            assert path in assets, template.name
            assert query == "?v={{ assets }}", template.name


def test_the_version_changes_with_any_asset() -> None:
    assets = read_assets()
    changed = {**assets, "vendor/htmx.min.js": assets["console.js"]}
    assert version_of(changed) != version_of(assets)


@pytest.mark.parametrize("path", ["/", "/topics", "/pipelines", "/access", "/access/rules", "/no-such-page"])
def test_a_page_has_one_stylesheet(visitor: Visitor, path: str) -> None:
    """The browser paints nothing before it has all of them."""
    assert visitor.get(path).source.count('rel="stylesheet"') == 1


def test_a_stylesheet_has_the_rules_of_its_parts() -> None:
    assets = read_assets()
    for rule in (b".side-foot", b".uplot", b".entity-mark"):
        assert rule in assets["console.css"].body
    for rule in (b".side-foot", b".verdict"):
        assert rule in assets["access.css"].body
    assert b".verdict" not in assets["console.css"].body
