"""Percentiles of measured latencies."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

SHARES = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p99.9": 0.999}


def percentiles(values: Iterable[float]) -> dict[str, float]:
    """p50 to p99.9 and the maximum, by nearest rank; an empty dictionary if there are no values."""
    ordered = sorted(values)
    if not ordered:
        return {}
    last = len(ordered) - 1
    named = {name: ordered[min(last, int(share * len(ordered)))] for name, share in SHARES.items()}
    return {**named, "max": ordered[-1]}
