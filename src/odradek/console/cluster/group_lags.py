"""The total lag of each group, for its trend."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.cli.framework.failure import Failure
from odradek.cli.group.state import read_offsets

if TYPE_CHECKING:
    from collections.abc import Mapping

    from odradek.cli.client.cluster import Cluster


def read_total_lags(cluster: Cluster, ends: Mapping[tuple[str, int], int], limit: int) -> dict[str, int]:
    """Records that each of the first `limit` groups has not read; groups without committed offsets are left out."""
    try:
        names = cluster.group_names()[:limit]
    except Failure:
        return {}  # a cluster may refuse to list groups, and answer the rest
    lags: dict[str, int] = {}
    for name in names:
        try:
            committed = read_offsets(cluster, name)
        except Failure:
            continue
        if committed:
            lags[name] = sum(max(ends.get(key, offset) - offset, 0) for key, offset in committed.items())
    return lags
