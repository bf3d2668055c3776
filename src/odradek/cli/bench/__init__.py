"""`odradek bench`: how fast a cluster takes records, gives them back, and passes one through."""

from __future__ import annotations

from odradek.cli.framework.commands import group


@group(
    lazy={
        "produce": ("odradek.cli.bench.produce:produce", "How many records a second the cluster takes."),
        "consume": ("odradek.cli.bench.consume:consume", "How many records a second the cluster gives."),
        "latency": ("odradek.cli.bench.latency:latency", "How long a record takes from producer to consumer."),
    },
    examples=[
        ("a million records of 100 bytes", "odradek bench produce"),
        ("read them back", "odradek bench consume"),
        ("10,000 records a second for ten seconds, end to end", "odradek bench latency --rate 10000 --duration 10s"),
    ],
)
def bench() -> None:
    """Measure a cluster: produce, consume, latency."""
