"""`odradek rigs`: simulated oil rigs, and a dashboard of the pipeline that reads their records."""

from __future__ import annotations

from odradek.cli.framework.commands import group


@group(
    lazy={
        "simulate": ("odradek.cli.rigs.simulate:simulate", "Produce the records of simulated pumps."),
        "watch": ("odradek.cli.rigs.watch:watch_rigs", "Show the dashboard of the rigs pipeline."),
    },
    examples=[
        ("1,000 records per second, until Ctrl-C", "odradek rigs simulate"),
        ("the dashboard, while the pipeline runs", "odradek rigs watch"),
    ],
)
def rigs() -> None:
    """Simulate oil rigs, and show the dashboard of their pipeline (examples/rigs)."""
