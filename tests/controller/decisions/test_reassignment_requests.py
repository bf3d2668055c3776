"""Reassignments: started, completed, replaced, cancelled, listed; and those that replace replicas of absent brokers."""

from dataclasses import replace

from odradek.controller.controller_duties import AbsentBrokers
from odradek.controller.decisions.reassignment_requests import NewReplicas, decide_reassignments, list_reassignments
from odradek.controller.decisions.replica_replacement import decide_replacements
from odradek.controller.decisions.topics import Cluster
from odradek.metadata.entities import PartitionImage
from odradek.protocol.errors import ErrorCode
from tests.controller.clusters import after, broker, cluster_of, image_of, partition, topic

FOUR = [broker(node_id) for node_id in (1, 2, 3, 4)]


def reassign(cluster: Cluster, replicas: tuple[int, ...] | None, *, allow: bool = True) -> tuple[Cluster, object]:
    (result,), changes = decide_reassignments(
        [NewReplicas("t", 0, replicas)], cluster, allow_replication_factor_change=allow
    )
    error = None if result.refusal is None else result.refusal.error
    return (after(cluster, changes) if changes else cluster), error


def only(cluster: Cluster) -> PartitionImage:
    return cluster.image.topics["t"].partitions[0]


def test_new_replicas_are_added_first_and_old_ones_stay_until_they_are_in_sync() -> None:
    cluster, error = reassign(cluster_of(image_of(FOUR, topic(partition(0, [1, 2])))), (3, 4))
    assert error is None
    moving = only(cluster)
    assert (moving.replicas, moving.adding_replicas, moving.removing_replicas) == ((3, 4, 1, 2), (3, 4), (1, 2))
    assert (moving.leader, moving.leader_epoch) == (1, 5)
    assert list_reassignments(cluster.image) == {"t": [moving]}
    assert list_reassignments(cluster.image, {"t": [0, 7], "u": [0]}) == {"t": [moving]}
    assert list_reassignments(cluster.image, {"t": [7]}) == {}


def test_another_order_is_complete_at_once() -> None:
    cluster, error = reassign(cluster_of(image_of(FOUR, topic(partition(0, [1, 2])))), (2, 1))
    assert (error, only(cluster).replicas, only(cluster).leader) == (None, (2, 1), 1)
    assert list_reassignments(cluster.image) == {}


def test_cancelling_returns_to_the_original_replicas() -> None:
    present = cluster_of(image_of(FOUR, topic(partition(0, [1, 2]))))
    assert reassign(present, None)[1] is ErrorCode.NO_REASSIGNMENT_IN_PROGRESS
    cluster, _ = reassign(present, (3, 4))
    cluster, error = reassign(cluster, None)
    assert error is None
    assert (only(cluster).replicas, only(cluster).adding_replicas, only(cluster).removing_replicas) == ((1, 2), (), ())


def test_cancelling_is_refused_when_only_new_replicas_are_in_sync() -> None:
    moving = replace(partition(0, [3, 1], [3]), adding_replicas=(3,), removing_replicas=())
    assert reassign(cluster_of(image_of(FOUR, topic(moving))), None)[1] is ErrorCode.INVALID_REPLICA_ASSIGNMENT
    allowed = cluster_of(image_of(FOUR, topic(moving), unclean_leader_election_enable="true"))
    cluster, error = reassign(allowed, None)
    assert (error, only(cluster).leader, only(cluster).replicas) == (None, 1, (1,))


def test_a_reassignment_to_all_present_replicas_stops_the_removal() -> None:
    cluster, _ = reassign(cluster_of(image_of(FOUR, topic(partition(0, [1, 2])))), (3, 2))
    cluster, error = reassign(cluster, (3, 2, 1))
    assert (error, only(cluster).replicas, only(cluster).removing_replicas) == (None, (3, 2, 1), ())


def test_replication_factor_stays_if_the_client_says_so() -> None:
    present = cluster_of(image_of(FOUR, topic(partition(0, [1, 2]))))
    assert reassign(present, (1, 2, 3), allow=False)[1] is ErrorCode.INVALID_REPLICATION_FACTOR
    moving, error = reassign(present, (3, 4), allow=False)
    assert error is None
    assert reassign(moving, (1,), allow=False)[1] is ErrorCode.INVALID_REPLICATION_FACTOR
    assert reassign(moving, (1, 2), allow=False)[1] is None


def test_unknown_brokers_and_partitions_are_refused() -> None:
    present = cluster_of(image_of(FOUR, topic(partition(0, [1, 2]))))
    assert reassign(present, (1, 9))[1] is ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert reassign(present, ())[1] is ErrorCode.INVALID_REPLICA_ASSIGNMENT
    (result,), _ = decide_reassignments([NewReplicas("t", 4, (1,))], present)
    assert result.refusal is not None
    assert result.refusal.error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_replicas_of_an_absent_broker_go_to_another_machine_and_rack_with_the_fewest() -> None:
    brokers = [
        broker(1, host="a", rack="r1"),
        replace(broker(2, host="b", rack="r2"), is_fenced=True),
        broker(3, host="a", rack="r3"),
        broker(4, host="c", rack="r1"),
        broker(5, host="d", rack="r4"),
    ]
    cluster = cluster_of(image_of(brokers, topic(partition(0, [1, 2], [1]), partition(1, [1, 3]))))
    count, changes = decide_replacements({2}, cluster)
    moved = after(cluster, changes).image.topics["t"].partitions
    assert count == 1
    assert (moved[0].replicas, moved[0].adding_replicas, moved[0].removing_replicas) == ((1, 5, 2), (5,), (2,))
    assert moved[1] == cluster.image.topics["t"].partitions[1]


def test_nothing_is_replaced_without_a_free_broker_or_beyond_the_limit() -> None:
    brokers = [broker(1), replace(broker(2), is_fenced=True)]
    full = cluster_of(image_of(brokers, topic(partition(0, [1, 2], [1]))))
    assert decide_replacements({2}, full) == (0, [])
    many = topic(*(partition(index, [1, 2], [1]) for index in range(10)))
    count, changes = decide_replacements({2}, cluster_of(image_of([*brokers, broker(3)], many)), limit=4)
    assert count == 4
    assert decide_replacements({2}, after(cluster_of(image_of([*brokers, broker(3)], many)), changes), limit=4)[0] == 0


def test_absence_is_counted_from_the_first_look_and_ends_with_a_return() -> None:
    away = image_of([broker(1), replace(broker(2), is_fenced=True)], topic(partition(0, [1, 9], [1])))
    absent = AbsentBrokers()
    absent.observe(away, 1000)
    assert absent.longer_than(500, 1499) == frozenset()
    assert absent.longer_than(500, 1500) == {2, 9}
    absent.observe(image_of([broker(1), broker(2)], topic(partition(0, [1, 9], [1]))), 1600)
    absent.observe(away, 1700)
    assert absent.longer_than(500, 1800) == {9}
