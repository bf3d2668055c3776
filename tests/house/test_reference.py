"""The documentation lists exactly the APIs and versions that the registry serves, and test files that exist."""

from __future__ import annotations

import re
from pathlib import Path

from odradek.handlers.registry import build_registry

ROOT = Path(__file__).resolve().parents[2]
REFERENCE = ROOT / "docs" / "reference.md"
TESTING = ROOT / "docs" / "testing.md"


def test_the_reference_lists_the_apis_that_are_served() -> None:
    rows = re.findall(r"^\| (\d+) \| (\w+) \| ([\d–]+) \|", REFERENCE.read_text(), re.MULTILINE)
    served = [
        (str(api.key), api.name, _versions(api.advertised_min_version, api.max_version))
        for api in sorted(build_registry().values(), key=lambda api: api.key)
    ]
    assert rows == served


def test_the_test_files_in_the_documentation_exist() -> None:
    files = re.findall(r"`(?:tests/)?([a-z_]+(?:/[a-z_]+)*/(?:test_)?\w+\.py)`", TESTING.read_text())
    assert len(files) >= 4
    assert [file for file in files if not (ROOT / "tests" / file).exists()] == []


def _versions(first: int, last: int) -> str:
    return str(first) if first == last else f"{first}–{last}"
