"""The total lag of each group, for its trend."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.cli.client.group_lag import unread_records
from odradek.cli.client.partition_offsets import LATEST, read_offsets_of
from odradek.cli.framework.failure import Failure
from odradek.cli.group.state import finish_offsets, request_offsets

if TYPE_CHECKING:
    from collections.abc import Mapping

    from odradek.cli.client.broker_requests import BrokerRequests
    from odradek.cli.client.cluster import Cluster
    from odradek.cli.client.cluster_state import ClusterState
    from odradek.cli.client.partition_offsets import Key


def read_total_lags(cluster: Cluster, requests: BrokerRequests, state: ClusterState, limit: int) -> dict[str, int]:
    """Records that each of the first `limit` groups has not read. Groups without committed offsets are left out, and
    those with a partition whose end is not known."""
    try:
        names = cluster.group_names()[:limit]
    except Failure:
        return {}  # a cluster may refuse to list groups, and answer the rest
    # All at once: those of a coordinator that does not answer wait together.
    futures = {name: request_offsets(cluster, name) for name in names}
    committed: dict[str, Mapping[Key, int]] = {}
    for name, future in futures.items():
        try:
            committed[name] = finish_offsets(cluster, name, future)
        except Failure:
            continue
    wanted = {key for offsets in committed.values() for key in offsets}
    partitions = [each for each in state.partitions if (each.topic, each.index) in wanted]
    # Read after the committed offsets: older ends would hide what was written since.
    ends = read_offsets_of(requests, state.brokers, partitions, LATEST)
    existing = {(each.topic, each.index) for each in partitions}
    lags = {name: unread_records(offsets, ends, existing) for name, offsets in committed.items() if offsets}
    return {name: lag for name, lag in lags.items() if lag is not None}
