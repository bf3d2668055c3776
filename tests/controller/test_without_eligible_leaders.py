"""Partitions while `eligible.leader.replicas.version` is 0, and when the level changes."""

from dataclasses import replace
from pathlib import Path

from odradek.controller.decisions.brokers import LiveBroker, decide_fencing, decide_live_brokers, decide_unfencing
from odradek.controller.decisions.features import FeatureUpdate, UpgradeType
from odradek.controller.decisions.offline_replicas import OfflineReplica, decide_offline_replicas
from odradek.controller.decisions.partition_repair import decide_repairs
from odradek.controller.decisions.topics import Cluster, NewTopic
from odradek.controller.requests import CreateTopics, UpdateFeatures
from odradek.metadata.changes import FeatureLevelChanged
from odradek.metadata.entities import PartitionImage
from odradek.metadata.features import ELIGIBLE_LEADER_REPLICAS
from odradek.protocol.errors import ErrorCode
from odradek.protocol.sentinels import NO_LEADER
from tests.controller.clusters import TOPIC_ID, after, broker, cluster_of, image_of, partition, topic
from tests.controller.local_controller import running

DISABLED, ENABLED = FeatureLevelChanged(ELIGIBLE_LEADER_REPLICAS, 0), FeatureLevelChanged(ELIGIBLE_LEADER_REPLICAS, 1)
LOWER = [FeatureUpdate(ELIGIBLE_LEADER_REPLICAS, 0, UpgradeType.SAFE_DOWNGRADE)]
THREE = [broker(1), broker(2), broker(3)]


def two_of_three(present: PartitionImage, **settings: str) -> Cluster:
    """Three brokers, a minimum of two, and no eligible leaders."""
    image = image_of(THREE, topic(present), min_insync_replicas="2", **settings)
    return after(cluster_of(image), [DISABLED])


def only(cluster: Cluster) -> PartitionImage:
    (found,) = cluster.image.topics["t"].partitions
    return found


def sets(cluster: Cluster) -> tuple[int, tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    found = only(cluster)
    eligible, last_known = found.eligible_leader_replicas, found.last_known_eligible_leader_replicas
    return found.leader, found.in_sync_replicas, eligible, last_known


def fence(cluster: Cluster, *node_ids: int) -> Cluster:
    return after(cluster, decide_fencing(dict.fromkeys(node_ids, 1), cluster).changes)


def unfence(cluster: Cluster, node_id: int) -> Cluster:
    return after(cluster, decide_unfencing(node_id, 1, cluster).changes)


def repair(cluster: Cluster) -> Cluster:
    return after(cluster, decide_repairs(cluster.image, cluster.config).changes)


def test_the_last_replica_stays_in_sync_and_alone_leads_again() -> None:
    present = two_of_three(partition(0, [1, 2, 3]))
    for node_id in (1, 2):
        present = fence(present, node_id)
    assert sets(present) == (3, (3,), (), ())
    present = fence(present, 3)
    assert sets(present) == (NO_LEADER, (3,), (), ())
    present = unfence(unfence(present, 1), 2)
    assert sets(present) == (NO_LEADER, (3,), (), ())
    assert sets(unfence(present, 3)) == (3, (3,), (), ())


def test_an_unclean_election_replaces_the_last_replica_where_it_is_allowed() -> None:
    present = two_of_three(partition(0, [1, 2, 3], [3]), unclean_leader_election_enable="true")
    assert sets(fence(present, 3)) == (1, (1,), (), ())


def test_the_last_replica_leads_again_also_after_an_unclean_shutdown() -> None:
    present = two_of_three(partition(0, [1, 2, 3], [3]))
    live = {3: LiveBroker(broker(3, epoch=9), [])}
    assert sets(after(present, decide_live_brokers(live, present).changes)) == (3, (3,), (), ())


def test_of_several_last_replicas_those_without_an_unclean_shutdown_are_preferred() -> None:
    present = fence(two_of_three(partition(0, [1, 2])), 1, 2)
    assert sets(present) == (NO_LEADER, (1, 2), (), ())
    live = {1: LiveBroker(broker(1, epoch=9), [])}
    present = after(present, decide_live_brokers(live, present).changes)
    assert sets(present) == (NO_LEADER, (2,), (), ())


def test_an_elected_replica_is_alone_in_sync() -> None:
    present = fence(two_of_three(partition(0, [1, 2])), 1, 2)
    live = {each: LiveBroker(broker(each, epoch=9), [1]) for each in (1, 2)}
    assert sets(after(present, decide_live_brokers(live, present).changes)) == (1, (1,), (), ())


def test_the_only_replica_with_the_records_stays_the_leader_on_a_failed_disk() -> None:
    present = two_of_three(partition(0, [1, 2, 3], [1]))
    assert decide_offline_replicas(1, 1, [OfflineReplica(TOPIC_ID, 0)], present) == (ErrorCode.NONE, [])


def test_eligible_leaders_are_forgotten_when_the_level_is_lowered() -> None:
    eligible = replace(partition(0, [1, 2, 3], [1]), eligible_leader_replicas=(2,))
    assert sets(repair(two_of_three(eligible))) == (1, (1,), (), ())


def test_eligible_leaders_of_a_partition_without_a_leader_stay_in_sync_when_the_level_is_lowered() -> None:
    gone = [replace(each, is_fenced=True) for each in THREE]
    eligible = replace(
        partition(0, [1, 2, 3], []), eligible_leader_replicas=(2, 3), last_known_eligible_leader_replicas=(3,)
    )
    present = after(cluster_of(image_of(gone, topic(eligible), min_insync_replicas="2")), [DISABLED])
    assert sets(repair(present)) == (NO_LEADER, (2, 3), (), ())
    assert sets(unfence(repair(present), 1)) == (NO_LEADER, (2, 3), (), ())
    assert sets(unfence(repair(present), 3)) == (3, (3,), (), ())
    assert sets(unfence(present, 3)) == (3, (3,), (), ()), "the repair has failed"
    lost = replace(eligible, eligible_leader_replicas=())
    present = after(cluster_of(image_of(gone, topic(lost))), [DISABLED])
    assert sets(repair(present)) == (NO_LEADER, (3,), (), ())


def test_the_last_replica_is_eligible_when_the_level_is_raised() -> None:
    present = fence(two_of_three(partition(0, [1, 2, 3], [3])), 3)
    present = repair(after(present, [ENABLED]))
    assert sets(present) == (NO_LEADER, (), (3,), ())
    assert sets(unfence(present, 3)) == (3, (3,), (), ())


async def test_the_controller_updates_partitions_when_a_level_changes(tmp_path: Path) -> None:
    async with running(tmp_path, node_id="1", min_insync_replicas="2") as (channel, cache):
        cluster = channel._controller.cluster
        await cluster.follow_live_brokers({each: LiveBroker(broker(each, epoch=1000), []) for each in (1, 2)})
        await channel.ask(CreateTopics([NewTopic(name="t", replication_factor=2)]))
        await cluster.fence_brokers({2: 1000})
        assert channel._controller.image.topics["t"].partitions[0].eligible_leader_replicas == (2,)
        version = channel._controller.image.version
        assert await channel.ask(UpdateFeatures(LOWER, validate_only=True)) is None
        assert channel._controller.image.version == version
        assert await channel.ask(UpdateFeatures(LOWER)) is None
        assert cache.image.topics["t"].partitions[0].eligible_leader_replicas == ()
        version = channel._controller.image.version
        assert await channel.ask(UpdateFeatures(LOWER)) is None
        assert channel._controller.image.version == version, "nothing to commit"


async def test_a_level_survives_a_restart(tmp_path: Path) -> None:
    async with running(tmp_path) as (channel, _):
        assert await channel.ask(UpdateFeatures(LOWER)) is None
    async with running(tmp_path) as (_, cache):
        assert cache.image.feature_level(ELIGIBLE_LEADER_REPLICAS) == 0
