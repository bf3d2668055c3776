"""The Grafana dashboard and the alert rules: they have the structure that Grafana and Prometheus load, their PromQL
parses, and every metric and label in them is one that a broker has."""

from __future__ import annotations

import json
import re
from typing import Any

import promql_parser
import pytest
import yaml

from odradek.cli.metrics import COLUMNS, asset, build_dashboard
from odradek.metrics.catalog import CATALOG
from odradek.metrics.samples import Kind

DASHBOARD = build_dashboard(asset("panels.txt"))
RULES: list[dict[str, Any]] = [
    rule for group in yaml.safe_load(asset("alerts.yml"))["groups"] for rule in group["rules"]
]
PANELS: list[dict[str, Any]] = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]
TARGETS = [(panel["title"], target) for panel in PANELS for target in panel["targets"]]
OF_PROMETHEUS = {"instance", "job"}  # labels that a scrape adds
SUFFIXES = ("_bucket", "_sum", "_count")


def expressions() -> list[tuple[str, str]]:
    """As Grafana sends them: with its variables replaced."""
    shown = [
        (title, target["expr"].replace("$__rate_interval", "1m").replace("$instance", ".*"))
        for title, target in TARGETS
    ]
    return [*shown, *((rule["alert"], rule["expr"]) for rule in RULES)]


def series_of(expression: str) -> list[tuple[str, set[str]]]:
    """Names of metrics, and labels that are matched, in a parsed expression."""
    found: list[tuple[str, set[str]]] = []

    def visit(node: Any) -> None:
        if isinstance(node, promql_parser.VectorSelector):
            found.append((node.name or "", {matcher.name for matcher in node.matchers.matchers}))
        for name in ("expr", "lhs", "rhs", "args", "vector_selector", "param"):
            child = getattr(node, name, None)
            for each in child if isinstance(child, list) else [child]:
                if each is not None:
                    visit(each)

    visit(promql_parser.parse(expression))
    return found


def labels_of(name: str) -> set[str] | None:
    """The labels of a metric of the catalog, or of a point of a histogram; None if there is no such metric."""
    if name == "up":
        return OF_PROMETHEUS
    if name in CATALOG and CATALOG[name].kind is not Kind.HISTOGRAM:
        return {*CATALOG[name].labels, *OF_PROMETHEUS}
    for suffix in SUFFIXES:
        base = CATALOG.get(name.removesuffix(suffix))
        if name.endswith(suffix) and base is not None and base.kind is Kind.HISTOGRAM:
            return {*base.labels, *OF_PROMETHEUS, *({"le"} if suffix == "_bucket" else ())}
    return None


def test_expressions_parse_and_use_metrics_and_labels_that_exist() -> None:
    for title, expression in expressions():
        series = series_of(expression)
        assert series, f"{title}: no metric is used"
        known: set[str] = set()
        for name, matched in series:
            labels = labels_of(name)
            assert labels is not None, f"{title}: no broker has {name}"
            assert matched <= labels, title
            known |= labels
        for grouped in re.findall(r"\bby \(([^)]*)\)", expression):
            assert {label.strip() for label in grouped.split(",")} <= known, title


def test_legends_use_labels_that_the_series_have() -> None:
    for title, target in TARGETS:
        wanted = set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]))
        grouped = [set(re.split(r", *", labels)) for labels in re.findall(r"\bby \(([^)]*)\)", target["expr"])]
        expression = target["expr"].replace("$__rate_interval", "1m").replace("$instance", ".*")
        present = grouped[0] if grouped else set.union(*(labels_of(name) or set() for name, _ in series_of(expression)))
        assert wanted <= present, title


def test_a_counter_is_never_shown_without_a_rate() -> None:
    for title, expression in expressions():
        for name, _ in series_of(expression):
            is_gauge = name in CATALOG and CATALOG[name].kind is Kind.GAUGE
            if name.endswith(("_total", *SUFFIXES)) and not is_gauge:
                assert re.search(rf"(?:rate|increase)\({name}\b", expression), title


def test_the_dashboard_has_the_structure_that_grafana_loads() -> None:
    assert json.loads(json.dumps(DASHBOARD)) == DASHBOARD
    assert {"uid", "title", "schemaVersion", "panels", "templating", "time"} <= DASHBOARD.keys()
    assert len(DASHBOARD["uid"]) <= 40
    ids = [panel["id"] for panel in DASHBOARD["panels"]]
    assert len(set(ids)) == len(ids)
    variables = {variable["name"] for variable in DASHBOARD["templating"]["list"]}
    assert variables == {"datasource", "instance"}
    for panel in PANELS:
        assert panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
        assert panel["type"] in {"timeseries", "stat"}
        references = [target["refId"] for target in panel["targets"]]
        assert references == sorted(set(references))


def test_panels_do_not_overlap() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in DASHBOARD["panels"]:
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert place["x"] + place["w"] <= COLUMNS
        assert not cells & taken
        taken |= cells


@pytest.mark.parametrize("rule", RULES, ids=[rule["alert"] for rule in RULES])
def test_rules_have_what_prometheus_needs_and_say_what_to_do(rule: dict[str, Any]) -> None:
    assert rule.keys() <= {"alert", "expr", "for", "labels", "annotations"}
    assert re.fullmatch(r"Odradek[A-Za-z]+", rule["alert"])
    assert rule["labels"]["severity"] in {"critical", "warning"}
    assert "for" not in rule or re.fullmatch(r"\d+[sm]", rule["for"])
    assert {"summary", "description"} == rule["annotations"].keys()
    used = set(re.findall(r"\$labels\.(\w+)", str(rule["annotations"])))
    grouped = [set(re.split(r", *", labels)) for labels in re.findall(r"\bby \(([^)]*)\)", rule["expr"])]
    present = grouped[0] if grouped else set.union(*(labels_of(name) or set() for name, _ in series_of(rule["expr"])))
    assert used <= present


def test_all_metrics_of_the_catalog_are_shown_or_watched() -> None:
    used = {name for _, expression in expressions() for name, _ in series_of(expression)}
    bases = {name.removesuffix(suffix) for name in used for suffix in ("", *SUFFIXES)}
    assert CATALOG.keys() - bases == {"odradek_active_brokers", "process_start_time_seconds"}
