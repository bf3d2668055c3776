"""The followers of one partition: when a leader is cut off from them, and what follows a refused proposal."""

from dataclasses import replace
from types import SimpleNamespace
from uuid import UUID

import pytest

from odradek.controller.decisions.in_sync_sets import InSyncResult
from odradek.metadata.entities import PartitionImage
from odradek.protocol.errors import ErrorCode
from odradek.replica.followers import PAUSE_AFTER_REFUSAL_MS, Followers
from odradek.replica.replica_watch import ReplicaWatches
from tests.replica.fake_replication import FakeReplication

SILENCE_MS = 50.0


class Scene:
    """Broker 0 leads; 1 and 2 follow. Ten records are in its log."""

    def __init__(self, in_sync: tuple[int, ...] = (0, 1, 2), min_in_sync: int = 2) -> None:
        image = PartitionImage(0, (0, 1, 2), in_sync, 0, 3, 1)
        self.context = FakeReplication(0, 1, 2)
        self.context.lag_time_max_ms = 10_000.0
        log = SimpleNamespace(log_end_offset=10, config=SimpleNamespace(min_insync_replicas=min_in_sync))
        partition = SimpleNamespace(
            topic_id=UUID(int=1),
            index=0,
            log=log,
            high_watermark=0,
            image=image,
            is_leader=True,
            followers=None,
            replica_watches=ReplicaWatches(),
            commit_replicated=lambda: None,
        )
        partition.followers = self.followers = Followers(partition, image, 0, self.context)

    def fetch(self, replica: int, offset: int) -> None:
        assert self.followers.record_fetch(replica, offset, 0, 1) is ErrorCode.NONE


@pytest.mark.parametrize(
    ("in_sync", "min_in_sync", "fetching", "is_cut_off"),
    [
        ((0, 1, 2), 2, (1, 2), False),
        ((0, 1, 2), 2, (1,), False),
        ((0, 1, 2), 2, (), True),
        ((0, 1, 2), 3, (1,), True),
        ((0, 1, 2), 1, (), True),
        ((0, 1), 1, (), True),
        ((0,), 1, (), False),
    ],
)
def test_a_leader_is_cut_off_when_too_few_in_sync_followers_fetch(
    in_sync: tuple[int, ...], min_in_sync: int, fetching: tuple[int, ...], is_cut_off: bool
) -> None:
    scene = Scene(in_sync, min_in_sync)
    scene.context.now_ms = SILENCE_MS
    for replica in fetching:
        scene.fetch(replica, 5)
    assert not scene.followers.is_cut_off(SILENCE_MS)
    scene.context.now_ms += 1
    assert scene.followers.is_cut_off(SILENCE_MS) is is_cut_off


def test_a_refused_proposal_is_looked_at_again_without_another_fetch() -> None:
    """Fetches do not visit a partition without traffic: its follower would join only at the next interval."""
    scene = Scene((0, 2))
    scene.fetch(1, 10)
    (proposer,) = scene.context.waiting
    proposal = proposer.proposal()
    assert proposal is not None
    assert proposer.resolve(proposal, InSyncResult(ErrorCode.INELIGIBLE_REPLICA))
    assert proposer.proposal() is None
    ((due_ms, again),) = scene.context.to_check
    assert due_ms == PAUSE_AFTER_REFUSAL_MS
    scene.context.now_ms = due_ms
    again.check_in_sync()
    assert proposer.proposal() == proposal


def test_a_replica_that_has_caught_up_during_a_proposal_is_proposed_when_it_is_decided() -> None:
    """Fetches do not visit a partition without traffic: it would join only at the next interval."""
    scene = Scene((0,), min_in_sync=1)
    scene.fetch(1, 10)
    scene.fetch(2, 10)
    (proposer,) = scene.context.waiting
    proposal = proposer.proposal()
    assert proposal is not None
    assert [member for member, _ in proposal.in_sync_replicas] == [0, 1]
    scene.context.waiting.clear()
    scene.followers.update(PartitionImage(0, (0, 1, 2), (0, 1), 0, 3, 2))
    proposal = scene.followers.proposal()
    assert scene.context.waiting == [scene.followers]
    assert proposal is not None
    assert [member for member, _ in proposal.in_sync_replicas] == [0, 1, 2]


def test_a_leader_with_a_lower_minimum_than_the_controller_commits_nothing_beside_eligible_replicas() -> None:
    """The controller may elect an eligible replica, which lacks what this leader would commit alone."""
    scene = Scene((0,), min_in_sync=1)
    assert not scene.followers.has_too_few
    alone = PartitionImage(0, (0, 1, 2), (0,), 0, 3, 2, eligible_leader_replicas=(1,))
    scene.followers.update(alone)
    assert scene.followers.has_too_few
    scene.followers.update(replace(alone, partition_epoch=3, eligible_leader_replicas=()))
    assert not scene.followers.has_too_few


def test_a_smaller_in_sync_set_counts_once_the_metadata_shows_who_stays_eligible() -> None:
    scene = Scene((0, 1, 2))
    scene.context.now_ms = scene.context.lag_time_max_ms + 1
    scene.fetch(1, 10)
    scene.followers.check_in_sync()
    proposal = scene.followers.proposal()
    assert proposal is not None
    assert scene.followers.resolve(proposal, InSyncResult(ErrorCode.NONE, 3, 2, (0, 1)))
    assert scene.followers.in_sync.confirmed == {0, 1, 2}
    scene.followers.update(PartitionImage(0, (0, 1, 2), (0, 1), 0, 3, 2))
    assert scene.followers.in_sync.confirmed == {0, 1}
    assert scene.followers.in_sync.proposed is None


def test_a_replica_that_the_controller_has_removed_joins_again_only_by_a_fetch() -> None:
    """Its log directory may have failed: what it had is known, but it will not fetch."""
    scene = Scene((0, 1, 2))
    scene.fetch(1, 10)
    scene.fetch(2, 10)
    scene.followers.update(PartitionImage(0, (0, 1, 2), (0, 2), 0, 3, 2))
    scene.followers.check_in_sync()
    assert scene.followers.proposal() is None
    assert scene.followers.committed_offset(10) == 10, "it is not waited for"
    scene.fetch(1, 10)
    proposal = scene.followers.proposal()
    assert proposal is not None
    assert {member for member, _ in proposal.in_sync_replicas} == {0, 1, 2}
