"""The life of a broker: what happens to partitions when it leaves, returns, shuts down or is unregistered."""

import uuid
from dataclasses import replace

from odradek.controller.decisions.brokers import (
    LiveBroker,
    decide_fencing,
    decide_live_brokers,
    decide_registration,
    decide_shutdown,
    decide_unfencing,
    decide_unregistration,
)
from odradek.controller.decisions.partition_repair import decide_repairs
from odradek.metadata.change_codec import encode_changes
from odradek.metadata.changes import BrokerRegistered, BrokerRemoved, PartitionsChanged
from odradek.metadata.entities import PartitionImage
from odradek.metadata.image import MetadataImage
from odradek.protocol.errors import ErrorCode
from odradek.protocol.refusal import Refusal
from odradek.protocol.sentinels import NO_LEADER
from tests.controller.clusters import after, broker, cluster_of, image_of, partition, topic

THREE = [broker(1), broker(2), broker(3)]


def only(image: MetadataImage) -> PartitionImage:
    (found,) = image.topics["t"].partitions
    return found


def test_broker_epoch_of_a_single_broker_is_the_version_of_the_registering_commit() -> None:
    present = cluster_of(image_of([]))
    broker_epoch, changes = decide_registration(broker(3), present)
    image = after(present, changes).image
    assert image.brokers[3].broker_epoch == broker_epoch == image.version


def test_next_in_sync_replica_leads_when_the_leader_dies() -> None:
    present = cluster_of(image_of(THREE, topic(partition(0, [1, 2, 3], [1, 3]))))
    present = after(present, decide_fencing({1: 1}, present).changes)
    changed = only(present.image)
    assert (changed.leader, changed.in_sync_replicas) == (3, (3,))
    assert (changed.leader_epoch, changed.partition_epoch) == (6, 8)


def test_fencing_of_an_earlier_registration_changes_nothing() -> None:
    present = cluster_of(image_of(THREE, topic(partition(0, [1, 2, 3]))))
    assert decide_fencing({1: 0, 9: 1}, present).changes == []


def test_a_thousand_partitions_of_a_dead_broker_take_one_commit() -> None:
    topics = [
        topic(*(partition(index, [1, 2, 3]) for index in range(100)), name=f"t{number}", topic_id=uuid.UUID(int=number))
        for number in range(10)
    ]
    present = cluster_of(image_of(THREE, *topics))
    decision = decide_fencing({1: 1}, present)
    assert decision.is_complete
    assert len(decision.changes) == 1 + len(topics)
    assert len(encode_changes(decision.changes)) < 64 * 1024
    image = after(present, decision.changes).image
    assert {each.leader for every in image.topics.values() for each in every.partitions} == {2}


def test_repairs_beyond_the_limit_continue_in_the_next_commit() -> None:
    present = cluster_of(image_of(THREE, topic(*(partition(index, [1, 2]) for index in range(25)))))
    present = after(present, [BrokerRegistered(replace(broker(1), is_fenced=True))])
    sizes = []
    is_complete = False
    while not is_complete:
        changes, is_complete = decide_repairs(present.image, present.config, limit=10)
        sizes += [len(each.partitions) for each in changes if isinstance(each, PartitionsChanged)]
        present = after(present, changes)
    assert sizes == [10, 10, 5]
    assert all(each.in_sync_replicas == (2,) for each in present.image.topics["t"].partitions)


def test_last_replicas_stay_eligible_and_lead_again_when_they_return() -> None:
    present = cluster_of(image_of(THREE, topic(partition(0, [1, 2, 3])), min_insync_replicas="2"))
    for node_id in (1, 2, 3):
        present = after(present, decide_fencing({node_id: 1}, present).changes)
    offline = only(present.image)
    assert (offline.leader, offline.in_sync_replicas) == (NO_LEADER, ())
    assert offline.eligible_leader_replicas == (2, 3)
    assert offline.last_known_eligible_leader_replicas == (3,)
    # Broker 1 left while the in-sync set was large enough: it may lack records.
    present = after(present, decide_unfencing(1, 1, present).changes)
    assert only(present.image).leader == NO_LEADER
    present = after(present, decide_unfencing(2, 1, present).changes)
    online = only(present.image)
    assert (online.leader, online.in_sync_replicas, online.eligible_leader_replicas) == (2, (2,), (3,))


def test_a_restarted_broker_leads_again_what_only_it_can_lead_with_a_new_epoch() -> None:
    topics = topic(partition(0, [1, 2]), partition(1, [1]))
    present = cluster_of(image_of(THREE, topics))
    live = {
        1: LiveBroker(broker(1, epoch=9), previous_broker_epochs=[1]),
        2: LiveBroker(broker(2), []),
        3: LiveBroker(broker(3), []),
    }
    image = after(present, decide_live_brokers(live, present).changes).image
    first, second = image.topics["t"].partitions
    assert (first.leader, first.in_sync_replicas, first.leader_epoch) == (2, (2,), 6)
    assert (second.leader, second.in_sync_replicas, second.leader_epoch) == (1, (1,), 7)
    assert image.brokers[1].broker_epoch == 9
    assert image.brokers[1].is_active


def test_a_broker_with_an_unclean_shutdown_is_not_elected_before_a_clean_one() -> None:
    lost = replace(partition(0, [1, 2], []), eligible_leader_replicas=(1, 2), last_known_eligible_leader_replicas=(1,))
    fenced = [replace(each, is_fenced=True) for each in (broker(1), broker(2))]
    present = cluster_of(image_of(fenced, topic(lost)))
    live = {1: LiveBroker(broker(1, epoch=9), previous_broker_epochs=[])}
    present = after(present, decide_live_brokers(live, present).changes)
    assert only(present.image).leader == NO_LEADER
    assert only(present.image).eligible_leader_replicas == (2,)
    live[2] = LiveBroker(broker(2, epoch=10), previous_broker_epochs=[1])
    present = after(present, decide_live_brokers(live, present).changes)
    assert only(present.image).leader == 2


def test_a_broker_that_registered_repeatedly_without_a_commit_has_lost_nothing() -> None:
    present = cluster_of(image_of([broker(1)], topic(partition(0, [1]))))
    live = {1: LiveBroker(broker(1, epoch=9), previous_broker_epochs=[1, 5])}
    image = after(present, decide_live_brokers(live, present).changes).image
    assert (only(image).leader, only(image).in_sync_replicas) == (1, (1,))
    assert only(image).last_known_eligible_leader_replicas == ()


def test_after_unclean_shutdowns_of_all_the_last_known_leader_is_elected() -> None:
    present = cluster_of(image_of([broker(1), broker(2)], topic(partition(0, [1, 2], [2, 1]))))
    live = {2: LiveBroker(broker(2, epoch=9), []), 1: LiveBroker(broker(1, epoch=9), [])}
    image = after(present, decide_live_brokers(live, present).changes).image
    assert (only(image).leader, only(image).in_sync_replicas) == (2, (2,))


def test_all_brokers_gone_and_one_returned_is_one_decision() -> None:
    present = cluster_of(image_of(THREE, topic(partition(0, [1, 2, 3])), min_insync_replicas="2"))
    live = {3: LiveBroker(broker(3, epoch=9), previous_broker_epochs=[1])}
    image = after(present, decide_live_brokers(live, present).changes).image
    assert (only(image).leader, only(image).eligible_leader_replicas) == (3, (1, 2))
    assert [each.node_id for each in image.brokers.values() if each.is_active] == [3]


def test_unclean_election_needs_the_setting() -> None:
    offline = replace(partition(0, [1, 2], []), eligible_leader_replicas=(1,))
    brokers = [replace(broker(1), is_fenced=True), broker(2)]
    refused = cluster_of(image_of(brokers, topic(offline)))
    assert decide_repairs(refused.image, refused.config).changes == []
    allowed = cluster_of(image_of(brokers, topic(offline), unclean_leader_election_enable="true"))
    image = after(allowed, decide_repairs(allowed.image, allowed.config).changes).image
    assert (only(image).leader, only(image).in_sync_replicas, only(image).eligible_leader_replicas) == (2, (2,), ())


def test_controlled_shutdown_moves_leaders_and_keeps_the_registration() -> None:
    present = cluster_of(image_of(THREE, topic(partition(0, [1, 2, 3]))))
    decision = decide_shutdown(1, 1, present)
    image = after(present, decision.changes).image
    assert (only(image).leader, only(image).in_sync_replicas) == (2, (2, 3))
    assert image.brokers[1].is_shutting_down
    assert not image.brokers[1].is_fenced
    assert decide_shutdown(1, 0, present).error is ErrorCode.STALE_BROKER_EPOCH


def test_unregistration_needs_a_stopped_broker_and_elects_no_replica_that_lacks_records() -> None:
    offline = replace(partition(0, [1, 2], []), eligible_leader_replicas=(1,), last_known_eligible_leader_replicas=(2,))
    present = cluster_of(image_of([replace(broker(1), is_fenced=True), broker(2)], topic(offline)))
    refusal = decide_unregistration(2, present)
    assert isinstance(refusal, Refusal)
    assert refusal.error is ErrorCode.INVALID_REQUEST
    assert decide_unregistration(7, present) == Refusal(
        ErrorCode.BROKER_ID_NOT_REGISTERED, "Broker ID 7 is not currently registered"
    )
    decision = decide_unregistration(1, present)
    assert not isinstance(decision, Refusal)
    assert decision.changes == [BrokerRemoved(1, 1)]
    present = after(present, decision.changes)
    second = LiveBroker(broker(2), [])
    returned = {1: LiveBroker(broker(1, epoch=9), previous_broker_epochs=[1]), 2: second}
    assert only(after(present, decide_live_brokers(returned, present).changes).image).leader == 1
    empty = {1: LiveBroker(broker(1, epoch=9), previous_broker_epochs=[]), 2: second}
    assert only(after(present, decide_live_brokers(empty, present).changes).image).leader == 2, "the last known leader"


def test_nobody_stays_eligible_beside_an_elected_replica_that_may_commit_alone() -> None:
    """Two in-sync replicas that leave together are both eligible. The one that returns first commits without the
    other, which lacks those records and must not be elected after it."""
    present = cluster_of(image_of(THREE, topic(partition(0, [1, 2], [1, 2])), min_insync_replicas="1"))
    present = after(present, decide_fencing({1: 1, 2: 1}, present).changes)
    assert only(present.image).eligible_leader_replicas == (1, 2)
    present = after(present, decide_unfencing(2, 1, present).changes)
    changed = only(present.image)
    assert (changed.leader, changed.in_sync_replicas, changed.eligible_leader_replicas) == (2, (2,), ())
    present = after(present, decide_fencing({2: 1}, present).changes)
    present = after(present, decide_unfencing(1, 1, present).changes)
    assert only(present.image).leader == NO_LEADER


def test_eligible_replicas_are_forgotten_once_the_minimum_is_reached() -> None:
    short = replace(partition(0, [1, 2, 3], [1]), eligible_leader_replicas=(2, 3))
    for min_in_sync, eligible in (("3", (2, 3)), ("2", (2, 3)), ("1", ())):
        present = cluster_of(image_of(THREE, topic(short), min_insync_replicas=min_in_sync))
        repairs = decide_repairs(present.image, present.config)
        changed = only(after(present, repairs.changes).image)
        assert changed.eligible_leader_replicas == eligible
        assert (changed.leader, changed.leader_epoch, changed.in_sync_replicas) == (1, 5, (1,))
