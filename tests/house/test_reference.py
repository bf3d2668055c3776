"""The reference tells the truth: it lists exactly the APIs and versions that the registry serves."""

from __future__ import annotations

import re
from pathlib import Path

from odradek.handlers.registry import build_registry

REFERENCE = Path(__file__).resolve().parents[2] / "docs" / "reference.md"


def test_the_reference_lists_the_apis_that_are_served() -> None:
    rows = re.findall(r"^\| (\d+) \| (\w+) \| ([\d–]+) \|", REFERENCE.read_text(), re.MULTILINE)
    served = [
        (str(api.key), api.name, _versions(api.advertised_min_version, api.max_version))
        for api in sorted(build_registry().values(), key=lambda api: api.key)
    ]
    assert rows == served


def _versions(first: int, last: int) -> str:
    return str(first) if first == last else f"{first}–{last}"
