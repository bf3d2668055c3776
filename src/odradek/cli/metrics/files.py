"""`odradek metrics dashboard` and `odradek metrics rules`: files for Grafana and Prometheus."""

from __future__ import annotations

import json
from importlib import resources

from odradek.cli.framework.commands import command
from odradek.cli.framework.output import say
from odradek.cli.metrics.grafana import build_dashboard


@command(examples=[("a dashboard to import in Grafana", "odradek metrics dashboard > odradek.json")])
def dashboard() -> None:
    """Print a Grafana dashboard as JSON.

    Import it in Grafana, and choose the Prometheus that scrapes the brokers. docs/metrics.md explains the metrics.
    """
    say(json.dumps(build_dashboard(asset("panels.txt")), indent=2))


@command(examples=[("alert rules, for rule_files of Prometheus", "odradek metrics rules > odradek-rules.yml")])
def rules() -> None:
    """Print alert rules for Prometheus as YAML.

    Name the file in rule_files of prometheus.yml. Each alert says what is wrong and what to do.
    """
    say(asset("alerts.yml").rstrip())


def asset(name: str) -> str:
    return (resources.files("odradek.cli.metrics") / "assets" / name).read_text(encoding="utf-8")
