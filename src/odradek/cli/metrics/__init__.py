"""`odradek metrics`: what monitoring systems need to watch brokers."""

from __future__ import annotations

from odradek.cli.framework.commands import group


@group(
    lazy={
        "dashboard": ("odradek.cli.metrics.files:dashboard", "Print a Grafana dashboard for the metrics of brokers."),
        "rules": ("odradek.cli.metrics.files:rules", "Print alert rules for Prometheus."),
    },
    examples=[
        ("a dashboard to import in Grafana", "odradek metrics dashboard > odradek.json"),
        ("alert rules, for rule_files of Prometheus", "odradek metrics rules > odradek-rules.yml"),
    ],
)
def metrics() -> None:
    """Print a Grafana dashboard and alert rules for the metrics of brokers."""
