"""Links between documents lead to files and headings that exist."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


def test_links_lead_somewhere() -> None:
    broken = [(document.name, link) for document in DOCUMENTS for link in broken_links(document)]
    assert broken == []


def broken_links(document: Path) -> list[str]:
    text = re.sub(r"^```.*?^```$", "", document.read_text(), flags=re.DOTALL | re.MULTILINE)
    links = [link for link in LINK.findall(text) if "://" not in link]
    return [link for link in links if not exists(document, *link.partition("#")[::2])]


def exists(document: Path, path: str, heading: str) -> bool:
    file = document.parent / path if path else document
    return file.exists() and (not heading or heading in headings(file.read_text()))


def headings(text: str) -> set[str]:
    """As GitHub writes them in links."""
    titles = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}
