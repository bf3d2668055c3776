"""Elections that users ask for, and preferred leaders that are given back."""

from dataclasses import replace

from odradek.controller.decisions.leader_election import ElectionKind
from odradek.controller.decisions.requested_elections import decide_elections, decide_preferred_leaders
from odradek.metadata.entities import PartitionImage
from odradek.protocol.errors import ErrorCode
from odradek.protocol.sentinels import NO_LEADER
from tests.controller.clusters import after, broker, cluster_of, image_of, partition, topic

GONE = replace(broker(1), is_fenced=True)


def led_by_second(index: int) -> PartitionImage:
    return partition(index, [1, 2], [2, 1])


def test_preferred_leader_is_elected_if_it_is_in_sync_and_active() -> None:
    cluster = cluster_of(image_of([broker(1), broker(2)], topic(led_by_second(0))))
    results, changes = decide_elections(ElectionKind.PREFERRED, [("t", 0), ("t", 0)], cluster)
    assert [each.refusal and each.refusal.error for each in results] == [None, ErrorCode.ELECTION_NOT_NEEDED]
    elected = after(cluster, changes).image.topics["t"].partitions[0]
    assert (elected.leader, elected.leader_epoch, elected.partition_epoch) == (1, 6, 8)
    assert elected.in_sync_replicas == (2, 1)


def test_preferred_leader_that_is_away_is_not_available() -> None:
    cluster = cluster_of(image_of([GONE, broker(2)], topic(partition(0, [1, 2], [2]))))
    (result,), changes = decide_elections(ElectionKind.PREFERRED, [("t", 0)], cluster)
    assert result.refusal is not None
    assert result.refusal.error is ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
    assert changes == []
    assert decide_preferred_leaders(cluster) == (0, [])


def test_unclean_election_that_a_user_asks_for_needs_no_setting() -> None:
    offline = replace(partition(0, [1, 2], []), eligible_leader_replicas=(1,))
    cluster = cluster_of(image_of([GONE, broker(2)], topic(offline)))
    (result,), changes = decide_elections(ElectionKind.UNCLEAN, None, cluster)
    assert result.refusal is None
    elected = after(cluster, changes).image.topics["t"].partitions[0]
    assert (elected.leader, elected.in_sync_replicas, elected.eligible_leader_replicas) == (2, (2,), ())


def test_unclean_election_without_an_active_replica_is_refused() -> None:
    offline = replace(partition(0, [1], []), eligible_leader_replicas=(1,))
    (result,), _ = decide_elections(ElectionKind.UNCLEAN, None, cluster_of(image_of([GONE], topic(offline))))
    assert result.refusal is not None
    assert result.refusal.error is ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE
    assert offline.leader == NO_LEADER


def test_preferred_leaders_are_given_back_in_bounded_rounds() -> None:
    cluster = cluster_of(image_of([broker(1), broker(2)], topic(*(led_by_second(index) for index in range(5)))))
    counts = []
    for _ in range(4):
        count, changes = decide_preferred_leaders(cluster, limit=2)
        counts.append(count)
        cluster = after(cluster, changes)
    assert counts == [2, 2, 1, 0]
    assert {each.leader for each in cluster.image.topics["t"].partitions} == {1}
