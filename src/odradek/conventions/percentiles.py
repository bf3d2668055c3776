"""Percentiles of measured values."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

SHARES = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p99.9": 0.999}


def percentiles(values: Iterable[float], shares: Mapping[str, float] = SHARES) -> dict[str, float]:
    """The shares and the maximum, by nearest rank: the least value that this share of the values does not exceed. An
    empty dictionary if there are no values."""
    ordered = sorted(values)
    if not ordered:
        return {}
    ranks = {name: math.ceil(round(share * len(ordered), 6)) for name, share in shares.items()}
    return {**{name: ordered[rank - 1] for name, rank in ranks.items()}, "max": ordered[-1]}
