"""`odradek rigs`: simulated oil rigs, and a dashboard of the pipeline that reads their records."""

from __future__ import annotations

from odradek.cli.framework.commands import group


@group(
    lazy={
        "simulate": ("odradek.cli.rigs.simulate:simulate", "Send the records of a fleet of simulated pumps."),
        "watch": ("odradek.cli.rigs.watch:watch_rigs", "Show what the rigs pipeline makes of them, live."),
    },
    examples=[
        ("a thousand records a second, until Ctrl-C", "odradek rigs simulate"),
        ("in another terminal, with the pipeline running", "odradek rigs watch"),
    ],
)
def rigs() -> None:
    """Simulated oil rigs and the dashboard of their pipeline, `examples/rigs`."""
