"""`odradek bench`: throughput of producing and consuming, and end-to-end latency of a cluster."""

from __future__ import annotations

from odradek.cli.framework.commands import group


@group(
    lazy={
        "produce": ("odradek.cli.bench.measuring:produce", "Measure the throughput of producing."),
        "consume": ("odradek.cli.bench.measuring:consume", "Measure the throughput of consuming."),
        "latency": ("odradek.cli.bench.measuring:latency", "Measure the time from producer to consumer."),
    },
    examples=[
        ("a million records of 100 bytes", "odradek bench produce"),
        ("read them back", "odradek bench consume"),
        ("latency at 10,000 records per second", "odradek bench latency --rate 10000 --duration 10s"),
    ],
)
def bench() -> None:
    """Measure a cluster: produce, consume, latency."""
