"""Bugs that the simulation must find: each replaces one rule of replication by a wrong one."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from odradek.log.partition_log import PartitionLog
from odradek.metadata.entities import PartitionImage
from odradek.protocol.sentinels import NO_EPOCH
from odradek.replica import leadership_changes, partition_fetch
from odradek.replica.fetch_request_session import FetchPosition
from odradek.replica.fetch_result import FetchResult, find_divergence
from odradek.replica.followed_partition import FollowedPartition
from odradek.replica.followers import Followers
from odradek.replica.in_sync_replicas import InSyncReplicas
from odradek.replica.metadata_application import apply_leadership
from odradek.replica.partition import Partition
from tests.planting import planting

_position = FollowedPartition.position
_may_join = InSyncReplicas.may_join


def _position_without_epoch(self: FollowedPartition, max_bytes: int) -> FetchPosition:
    return _position(self, max_bytes)._replace(last_fetched_epoch=NO_EPOCH)


def _own_end_offset(self: InSyncReplicas, own_end_offset: int, *_: Any) -> int:
    return own_end_offset


def _confirmed_only(self: InSyncReplicas) -> frozenset[int]:
    return self.confirmed if self.proposed is None else self.proposed


def _divergence_by_offset_only(
    log: PartitionLog, fetch_offset: int, last_fetched_epoch: int, high_watermark: int, last_stable_offset: int
) -> FetchResult | None:
    _, end_offset = log.epoch_end_offset(last_fetched_epoch)
    if end_offset >= fetch_offset:
        return None
    return find_divergence(log, fetch_offset, last_fetched_epoch, high_watermark, last_stable_offset)


def _join_at_once(
    self: InSyncReplicas, replica: int, high_watermark: int, epoch_start_offset: int, current: int | None
) -> bool:
    return _may_join(self, replica, -1, -1, current)


def _lead_unregistered(partition: Partition, image: PartitionImage, node_id: int, *, may_lead: bool) -> bool:
    return apply_leadership(partition, image, node_id, may_lead=True)


def _wait_for_nobody_below_the_minimum(self: Followers) -> bool:
    return False


# What is replaced: an object, the name of its attribute, and the wrong rule.
BUGS: dict[str, list[tuple[Any, str, Any]]] = {
    "a follower never truncates": [(FollowedPartition, "position", _position_without_epoch)],
    "the high watermark does not wait for followers": [(InSyncReplicas, "committed_offset", _own_end_offset)],
    "the high watermark trusts an in-sync set that is not confirmed": [
        (InSyncReplicas, "maximal", property(_confirmed_only))
    ],
    "a leader forgets to compare leader epochs": [(partition_fetch, "find_divergence", _divergence_by_offset_only)],
    "a replica joins before it has what is committed": [(InSyncReplicas, "may_join", _join_at_once)],
    "a restarted broker leads before its registration is committed": [
        (leadership_changes, "apply_leadership", _lead_unregistered)
    ],
    "records are committed below min.insync.replicas": [
        (Followers, "has_too_few", property(_wait_for_nobody_below_the_minimum))
    ],
}


@contextmanager
def planted(patches: list[tuple[Any, str, Any]]) -> Iterator[None]:
    """NotPlanted at the end if no code has followed a wrong rule."""
    with planting() as patch:
        for target, attribute, wrong in patches:
            patch.setattr(target, attribute, wrong)
        yield


def seeds_until_found(patches: list[tuple[Any, str, Any]], run: Callable[[int], object], limit: int) -> int | None:
    """How many seeds it takes to notice the bug, which is printed, too; None if none of them does."""
    with planted(patches):
        for seed in range(limit):
            try:
                run(seed)
            except AssertionError:
                print(f"found by {seed + 1} seeds")
                return seed + 1
    return None
