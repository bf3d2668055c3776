"""The total lag of each group, for its trend."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.cli.client.committed_offsets import read_committed_offsets_of
from odradek.cli.client.group_lag import unread_records
from odradek.cli.client.partition_offsets import LATEST, read_offsets_of
from odradek.cli.framework.failure import Failure

if TYPE_CHECKING:
    from odradek.cli.client.broker_requests import BrokerRequests
    from odradek.cli.client.cluster import Cluster
    from odradek.cli.client.cluster_state import ClusterState


def read_total_lags(cluster: Cluster, requests: BrokerRequests, state: ClusterState, limit: int) -> dict[str, int]:
    """Records that each of the first `limit` groups has not read. Groups without committed offsets are left out, and
    those with a partition whose end is not known."""
    try:
        names = cluster.group_names()[:limit]
    except Failure:
        return {}  # a cluster may refuse to list groups, and answer the rest
    committed = read_committed_offsets_of(requests, names)
    wanted = {key for offsets in committed.values() for key in offsets}
    partitions = [each for each in state.partitions if (each.topic, each.index) in wanted]
    # Read after the committed offsets: older ends would hide what was written since.
    ends = read_offsets_of(requests, state.brokers, partitions, LATEST)
    existing = {(each.topic, each.index) for each in partitions}
    lags = {name: unread_records(offsets, ends, existing) for name, offsets in committed.items() if offsets}
    return {name: lag for name, lag in lags.items() if lag is not None}
