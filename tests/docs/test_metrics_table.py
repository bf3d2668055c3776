"""docs/metrics.md lists exactly the metrics of the catalog, with their kinds, labels and meanings."""

from __future__ import annotations

import re
from pathlib import Path

from odradek.metrics.catalog import CATALOG
from odradek.metrics.samples import Kind

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "metrics.md"


def test_the_documented_metrics_are_those_of_the_catalog() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (\w+) \| (.*?) \| (.*) \|$", DOCUMENT.read_text(), re.MULTILINE)
    documented = [(name, kind, tuple(re.findall(r"`(\w+)`", labels)), text) for name, kind, labels, text in rows]
    assert documented == [(each.name, each.kind.value, each.labels, each.text) for each in CATALOG.values()]


def test_names_follow_the_conventions_of_prometheus() -> None:
    for definition in CATALOG.values():
        assert re.fullmatch(r"(odradek|process)_[a-z_]+", definition.name)
        assert (definition.kind is Kind.COUNTER) == definition.name.endswith("_total")
        assert definition.kind is not Kind.HISTOGRAM or definition.name.endswith("_seconds")
        assert "le" not in definition.labels
