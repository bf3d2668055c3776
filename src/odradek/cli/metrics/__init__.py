"""`odradek metrics`: a dashboard for Grafana, which is built from a table, and alert rules for Prometheus.

A panel is `title | unit | legend | expression`; further lines that begin with `+` add expressions to it. A line that
begins with `#` starts a row of the dashboard, one with `=` a panel that shows a number instead of a graph, and one with
`=!` a number that is red unless it is zero. In an expression, `{B}` and `,I}` stand for the chosen brokers.
"""

from __future__ import annotations

import json
from importlib import resources
from typing import Any

from odradek.cli.framework.commands import group
from odradek.cli.framework.output import say

COLUMNS = 24
GRAPH_WIDTH, GRAPH_HEIGHT = 8, 8
NUMBER_WIDTH, NUMBER_HEIGHT = 3, 4
DATASOURCE = {"type": "prometheus", "uid": "${datasource}"}
DATASOURCE_VARIABLE = {
    "name": "datasource", "label": "Prometheus", "type": "datasource", "query": "prometheus", "hide": 0
}  # fmt: skip
UID = "odradek-brokers"
NUMBER_OPTIONS = {
    "reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False},
    "graphMode": "area",
    "colorMode": "value",
    "justifyMode": "auto",
    "textMode": "value",
    "orientation": "auto",
    "wideLayout": True,
    "showPercentChange": False,
    "percentChangeColorMode": "standard",
}
GRAPH_OPTIONS = {
    "legend": {"displayMode": "list", "placement": "bottom", "showLegend": True, "calcs": []},
    "tooltip": {"mode": "multi", "sort": "desc"},
}


@group(
    examples=[
        ("a dashboard to import in Grafana", "odradek metrics dashboard > odradek.json"),
        ("alert rules, for rule_files of Prometheus", "odradek metrics rules > odradek-rules.yml"),
    ],
)
def metrics() -> None:
    """Print a Grafana dashboard and alert rules for the metrics of brokers."""


@metrics.command(
    short_help="Print a Grafana dashboard for the metrics of brokers.",
    examples=[("a dashboard to import in Grafana", "odradek metrics dashboard > odradek.json")],
)
def dashboard() -> None:
    """Print a Grafana dashboard as JSON.

    Import it in Grafana, and choose the Prometheus that scrapes the brokers. docs/metrics.md explains the metrics.
    """
    say(json.dumps(build_dashboard(asset("panels.txt")), indent=2))


@metrics.command(
    short_help="Print alert rules for Prometheus.",
    examples=[("alert rules, for rule_files of Prometheus", "odradek metrics rules > odradek-rules.yml")],
)
def rules() -> None:
    """Print alert rules for Prometheus as YAML.

    Name the file in rule_files of prometheus.yml. Each alert says what is wrong and what to do.
    """
    say(asset("alerts.yml").rstrip())


def asset(name: str) -> str:
    return (resources.files(__name__) / "assets" / name).read_text(encoding="utf-8")


def build_dashboard(table: str) -> dict[str, Any]:
    return {
        "uid": UID,
        "title": "Odradek brokers",
        "description": "Requests, traffic, replication, logs, coordinators and processes of Odradek brokers.",
        "tags": ["odradek", "kafka"],
        "schemaVersion": 39,
        "version": 1,
        "editable": True,
        "graphTooltip": 1,
        "refresh": "10s",
        "time": {"from": "now-1h", "to": "now"},
        "timezone": "browser",
        "annotations": {"list": []},
        "templating": {"list": [DATASOURCE_VARIABLE, _instance_variable()]},
        "panels": _panels(table),
    }


def _instance_variable() -> dict[str, Any]:
    query = "label_values(odradek_build_info, instance)"
    return {
        "name": "instance",
        "label": "Broker",
        "type": "query",
        "datasource": DATASOURCE,
        "query": query,
        "definition": query,
        "refresh": 2,
        "sort": 1,
        "multi": True,
        "includeAll": True,
        "allValue": ".*",
        "current": {"text": "All", "value": "$__all", "selected": True},
        "hide": 0,
    }


def _panels(table: str) -> list[dict[str, Any]]:
    panels: list[dict[str, Any]] = []
    x = y = height = 0
    for line in table.strip().splitlines():
        if line.startswith("+"):
            _add_target(panels[-1], *_cells(line[1:]))
            continue
        is_row, is_number = line.startswith("#"), line.startswith("=")
        width, own_height = (
            (COLUMNS, 1) if is_row else (NUMBER_WIDTH, NUMBER_HEIGHT) if is_number else (GRAPH_WIDTH, GRAPH_HEIGHT)
        )
        if is_row or x + width > COLUMNS:
            x, y, height = 0, y + height, 0
        place = {"x": x, "y": y, "w": width, "h": own_height}
        panels.append(_row(line[1:].strip(), place) if is_row else _panel(line, place, is_number))
        panels[-1]["id"] = len(panels)
        x, height = x + width, max(height, own_height)
    return panels


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.split(" | ")]


def _row(title: str, place: dict[str, int]) -> dict[str, Any]:
    return {"type": "row", "title": title, "gridPos": place, "collapsed": False, "panels": []}


def _panel(line: str, place: dict[str, int], is_number: bool) -> dict[str, Any]:
    title, unit, legend, expression = _cells(line.lstrip("=! ").replace("| |", "|  |"))
    panel: dict[str, Any] = {
        "type": "stat" if is_number else "timeseries",
        "title": title,
        "gridPos": place,
        "datasource": DATASOURCE,
        "fieldConfig": {
            "defaults": {"unit": unit, "min": 0, "thresholds": _thresholds(line.startswith("=!"))},
            "overrides": [],
        },
        "options": NUMBER_OPTIONS if is_number else GRAPH_OPTIONS,
        "targets": [],
    }
    _add_target(panel, legend, expression)
    return panel


def _thresholds(is_problem: bool) -> dict[str, Any]:
    """Without these, Grafana colours every number from 80 on red."""
    steps: list[dict[str, Any]] = [{"color": "green", "value": None}]
    return {"mode": "absolute", "steps": [*steps, {"color": "red", "value": 1}] if is_problem else steps}


def _add_target(panel: dict[str, Any], legend: str, expression: str) -> None:
    chosen = 'instance=~"$instance"'
    panel["targets"].append(
        {
            "refId": chr(ord("A") + len(panel["targets"])),
            "datasource": DATASOURCE,
            "expr": expression.replace("{B}", f"{{{chosen}}}").replace(",I}", f",{chosen}}}"),
            "legendFormat": legend or "__auto",
        }
    )
