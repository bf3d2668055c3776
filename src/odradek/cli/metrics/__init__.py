"""`odradek metrics`: a dashboard for Grafana, which is built from a template and a table of panels, and alert rules for
Prometheus.

A panel is `title | unit | legend | expression`; further lines that begin with `+` add expressions to it. A line that
begins with `#` starts a row of the dashboard, one with `=` a panel that shows a number instead of a graph, and one with
`=!` a number that is red unless it is zero. In an expression, `{B}` and `,I}` stand for the chosen brokers.
"""

from __future__ import annotations

import copy
import json
from importlib import resources
from typing import Any

from odradek.cli.framework.commands import group
from odradek.cli.framework.output import say

COLUMNS = 24
GRAPH_WIDTH, GRAPH_HEIGHT = 8, 8
NUMBER_WIDTH, NUMBER_HEIGHT = 3, 4


@group(
    ("a dashboard to import in Grafana", "odradek metrics dashboard > odradek.json"),
    ("alert rules, for rule_files of Prometheus", "odradek metrics rules > odradek-rules.yml"),
)
def metrics() -> None:
    """Print a Grafana dashboard and alert rules for the metrics of brokers."""


@metrics.command(("a dashboard to import in Grafana", "odradek metrics dashboard > odradek.json"))
def dashboard() -> None:
    """Print a Grafana dashboard as JSON.

    Import it in Grafana, and choose the Prometheus that scrapes the brokers. docs/metrics.md explains the metrics.
    """
    say(json.dumps(build_dashboard(asset("panels.txt")), indent=2))


@metrics.command(("alert rules, for rule_files of Prometheus", "odradek metrics rules > odradek-rules.yml"))
def rules() -> None:
    """Print alert rules for Prometheus as YAML.

    Name the file in rule_files of prometheus.yml. Each alert says what is wrong and what to do.
    """
    say(asset("alerts.yml").rstrip())


def asset(name: str) -> str:
    return (resources.files(__name__) / "assets" / name).read_text(encoding="utf-8")


def build_dashboard(table: str) -> dict[str, Any]:
    template = json.loads(asset("dashboard.json"))
    return {**template["dashboard"], "panels": _panels(table, template)}


def _panels(table: str, template: dict[str, Any]) -> list[dict[str, Any]]:
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
        panels.append(_row(line[1:].strip(), place) if is_row else _panel(line, place, template))
        panels[-1]["id"] = len(panels)
        x, height = x + width, max(height, own_height)
    return panels


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.split(" | ")]


def _row(title: str, place: dict[str, int]) -> dict[str, Any]:
    return {"type": "row", "title": title, "gridPos": place, "collapsed": False, "panels": []}


def _panel(line: str, place: dict[str, int], template: dict[str, Any]) -> dict[str, Any]:
    title, unit, legend, expression = _cells(line.lstrip("=! ").replace("| |", "|  |"))
    panel: dict[str, Any] = copy.deepcopy(template["number" if line.startswith("=") else "graph"])
    panel |= {"title": title, "gridPos": place}
    defaults = panel["fieldConfig"]["defaults"]
    defaults["unit"] = unit
    if line.startswith("=!"):  # the template has thresholds: without them every number from 80 on is red
        defaults["thresholds"]["steps"].append({"color": "red", "value": 1})
    _add_target(panel, legend, expression)
    return panel


def _add_target(panel: dict[str, Any], legend: str, expression: str) -> None:
    chosen = 'instance=~"$instance"'
    panel["targets"].append(
        {
            "refId": chr(ord("A") + len(panel["targets"])),
            "datasource": panel["datasource"],
            "expr": expression.replace("{B}", f"{{{chosen}}}").replace(",I}", f",{chosen}}}"),
            "legendFormat": legend or "__auto",
        }
    )
