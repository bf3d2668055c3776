"""The rules of the in-sync set, one by one."""

import pytest

from odradek.replica.in_sync_replicas import FollowerProgress, InSyncReplicas

LAG_MS = 100.0
EPOCH = 7


def in_sync(confirmed: tuple[int, ...] = (0, 1, 2), now_ms: float = 0.0) -> InSyncReplicas:
    return InSyncReplicas(0, (0, 1, 2), confirmed, now_ms)


def fetched(replicas: InSyncReplicas, replica: int, offset: int, *, end: int = 10, now_ms: float = 0.0) -> None:
    replicas.followers[replica].record_fetch(offset, 0, EPOCH, end, now_ms)


def committed(replicas: InSyncReplicas, own_end: int = 10, *, now_ms: float = 0.0, epoch: int | None = EPOCH) -> int:
    return replicas.committed_offset(own_end, 10, now_ms, LAG_MS, lambda _: epoch)


def test_a_follower_at_the_log_end_is_caught_up() -> None:
    progress = FollowerProgress(0.0)
    progress.record_fetch(10, 0, EPOCH, 10, 50.0)
    assert progress.caught_up_ms == 50.0
    assert progress.is_caught_up(99, 150.0, LAG_MS)
    assert not progress.is_caught_up(99, 151.0, LAG_MS)
    assert progress.is_caught_up(10, 1000.0, LAG_MS), "nothing was written since"


def test_a_follower_that_has_what_the_leader_had_at_its_last_fetch_was_caught_up_then() -> None:
    progress = FollowerProgress(0.0)
    progress.record_fetch(5, 0, EPOCH, 10, 50.0)
    progress.record_fetch(10, 0, EPOCH, 20, 90.0)
    assert progress.caught_up_ms == 50.0
    progress.record_fetch(15, 0, EPOCH, 30, 95.0)
    assert progress.caught_up_ms == 50.0, "it is behind the end of 20 that it could have reached"


def test_the_high_watermark_waits_for_every_member() -> None:
    replicas = in_sync()
    assert committed(replicas) == -1, "nothing is known of the followers"
    fetched(replicas, 1, 10)
    fetched(replicas, 2, 4)
    assert committed(replicas) == 4
    assert committed(replicas, own_end=3) == 3


@pytest.mark.parametrize("proposed", [{0, 1}, {0, 1, 2}])
def test_a_change_on_its_way_needs_the_union_of_both_sets(proposed: set[int]) -> None:
    replicas = in_sync((0, 2) if proposed == {0, 1, 2} else (0, 1, 2))
    fetched(replicas, 1, 10)
    fetched(replicas, 2, 4)
    replicas.propose(frozenset(proposed))
    assert replicas.maximal == {0, 1, 2}
    assert committed(replicas) == 4
    replicas.confirm((0, 1))
    assert replicas.maximal == {0, 1}
    assert replicas.proposed is None


def test_a_caught_up_replica_is_waited_for_before_it_joins() -> None:
    """Otherwise a leader that commits alone would stay ahead of each of its fetches."""
    replicas = in_sync((0, 2))
    fetched(replicas, 2, 10)
    fetched(replicas, 1, 8, end=8)
    assert committed(replicas, now_ms=LAG_MS) == 8
    assert committed(replicas, now_ms=LAG_MS + 1) == 10, "it has stopped to fetch"
    assert committed(replicas, now_ms=LAG_MS, epoch=None) == 10, "it is fenced"
    assert committed(replicas, now_ms=LAG_MS, epoch=EPOCH + 1) == 10, "it has registered again"


@pytest.mark.parametrize(
    ("high_watermark", "epoch_start", "epoch", "joins"),
    [(8, 8, EPOCH, True), (9, 0, EPOCH, False), (0, 9, EPOCH, False), (0, 0, EPOCH + 1, False), (0, 0, None, False)],
)
def test_who_may_join(high_watermark: int, epoch_start: int, epoch: int | None, joins: bool) -> None:
    replicas = in_sync((0, 2))
    fetched(replicas, 1, 8)
    assert replicas.may_join(1, high_watermark, epoch_start, epoch) is joins
    assert not replicas.may_join(2, 0, 0, EPOCH), "it is a member"
    assert not replicas.may_join(5, 0, 0, EPOCH), "it is no replica"


def test_members_that_lag_for_too_long() -> None:
    replicas = in_sync(now_ms=1000.0)
    fetched(replicas, 1, 10, now_ms=1050.0)
    assert replicas.lagging(20, 1100.0, LAG_MS) == frozenset(), "a new leader gives its members time to fetch"
    assert replicas.lagging(20, 1101.0, LAG_MS) == {2}
    assert replicas.lagging(20, 1200.0, LAG_MS) == {1, 2}
    assert replicas.lagging(10, 1200.0, LAG_MS) == {2}, "at the log end nobody lags"


def test_no_more_members_are_required_than_there_are_replicas() -> None:
    assert in_sync((0,)).has_too_few(2)
    assert not in_sync((0, 1)).has_too_few(2)
    assert not in_sync().has_too_few(5)


def test_known_progress_is_kept_when_replicas_are_added() -> None:
    replicas = in_sync()
    fetched(replicas, 1, 6)
    replicas.set_replicas((0, 1, 3), 5.0)
    assert replicas.followers[1].fetch_offset == 6
    assert set(replicas.followers) == {1, 3}


def test_a_follower_for_which_records_wait_is_silent_after_a_time_without_fetches() -> None:
    progress = FollowerProgress(0.0)
    progress.record_fetch(10, 0, EPOCH, 10, 50.0)
    assert not progress.is_silent(10, 1000.0, LAG_MS), "it has everything, so that its fetches are not noted"
    assert not progress.is_silent(11, 150.0, LAG_MS)
    assert progress.is_silent(11, 151.0, LAG_MS)
    progress.record_fetch(10, 0, EPOCH, 20, 151.0)
    assert not progress.is_silent(20, 200.0, LAG_MS), "it is slow, not silent"
