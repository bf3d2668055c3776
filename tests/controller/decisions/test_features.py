"""Which updates of feature levels the controller accepts. The messages are those of Apache Kafka.

`handlers/test_update_features.py` and `clients/test_kafka_tools.py` compare most of them with Apache Kafka 4.3.1; those
about negative levels and unknown upgrade types are from its sources (4.0)."""

import pytest

from odradek.configuration.config_types import ConfigResourceType
from odradek.controller.decisions.features import FeatureUpdate, UpgradeType, decide_feature_updates
from odradek.controller.decisions.partition_rules import MIN_IN_SYNC
from odradek.metadata.changes import ConfigsChanged, FeatureLevelChanged
from odradek.metadata.features import ELIGIBLE_LEADER_REPLICAS as ELIGIBLE
from odradek.metadata.features import SUPPORTED_FEATURES
from odradek.protocol.errors import ErrorCode
from tests.controller.clusters import after, cluster_of, image_of

BROKER = ConfigResourceType.BROKER
UP, SAFE, UNSAFE = UpgradeType
PREFIX = "The update failed for all features since the following feature had an error: Invalid update version "
WITHOUT_TYPE = (
    "Can't downgrade the version of this feature without setting the upgrade type to either safe or unsafe downgrade."
)
CLUSTER = cluster_of(image_of([]), node_id="1")
DISABLED = after(CLUSTER, [FeatureLevelChanged(ELIGIBLE, 0)])


def test_metadata_without_levels_has_the_largest() -> None:
    assert {name: CLUSTER.image.feature_level(name) for name in SUPPORTED_FEATURES} == {
        "eligible.leader.replicas.version": 1,
        "group.version": 1,
        "metadata.version": 30,
        "transaction.version": 2,
    }


@pytest.mark.parametrize("downgrade", [SAFE, UNSAFE])
def test_a_level_is_lowered_and_raised_again(downgrade: UpgradeType) -> None:
    lowered = decide_feature_updates([FeatureUpdate(ELIGIBLE, 0, downgrade)], CLUSTER)
    assert lowered == (None, [FeatureLevelChanged(ELIGIBLE, 0)])
    raised = decide_feature_updates([FeatureUpdate(ELIGIBLE, 1)], DISABLED)
    assert raised == (None, [FeatureLevelChanged(ELIGIBLE, 1), ConfigsChanged(BROKER, "", {MIN_IN_SYNC: "1"})])
    assert after(DISABLED, raised[1]).image.feature_level(ELIGIBLE) == 1


def test_all_brokers_have_one_minimum_while_eligible_leaders_are_kept() -> None:
    own = after(DISABLED, [ConfigsChanged(BROKER, "1", {MIN_IN_SYNC: "3"})])
    _, changes = decide_feature_updates([FeatureUpdate(ELIGIBLE, 1)], own)
    enabled = after(own, changes).image
    assert (enabled.configs_of(BROKER, "1"), enabled.configs_of(BROKER, "")) == ({}, {MIN_IN_SYNC: "1"})
    chosen = after(DISABLED, [ConfigsChanged(BROKER, "", {MIN_IN_SYNC: "2"})])
    assert decide_feature_updates([FeatureUpdate(ELIGIBLE, 1)], chosen) == (None, [FeatureLevelChanged(ELIGIBLE, 1)])


@pytest.mark.parametrize("upgrade_type", UpgradeType)
@pytest.mark.parametrize("name", SUPPORTED_FEATURES)
def test_a_level_that_is_set_already_is_accepted_and_not_committed(name: str, upgrade_type: UpgradeType) -> None:
    update = FeatureUpdate(name, CLUSTER.image.feature_level(name), upgrade_type)
    assert decide_feature_updates([update], CLUSTER) == (None, [])


@pytest.mark.parametrize(
    ("name", "level", "upgrade_type", "reason"),
    [
        (ELIGIBLE, 2, UP, "Local controller 1 only supports versions 0-1"),
        (ELIGIBLE, -1, SAFE, "A feature version cannot be less than 0."),
        (ELIGIBLE, 1, 0, "The controller does not support the given upgrade type."),
        (ELIGIBLE, 1, 4, "The controller does not support the given upgrade type."),
        (ELIGIBLE, 0, UP, WITHOUT_TYPE),
        ("group.version", 0, SAFE, "Local controller 1 only supports versions 1"),
        ("transaction.version", 1, UNSAFE, "Local controller 1 only supports versions 2"),
        ("metadata.version", 29, SAFE, "Local controller 1 only supports versions 30"),
        ("share.version", 1, UP, "Local controller 1 does not support this feature."),
        ("no.such.version", 1, UP, "Local controller 1 does not support this feature."),
    ],
)
def test_refusals(name: str, level: int, upgrade_type: int, reason: str) -> None:
    refusal, changes = decide_feature_updates([FeatureUpdate(name, level, upgrade_type)], CLUSTER)
    assert refusal == (ErrorCode.INVALID_UPDATE_VERSION, f"{PREFIX}{level} for feature {name}. {reason}")
    assert changes == []


@pytest.mark.parametrize("downgrade", [SAFE, UNSAFE])
def test_a_downgrade_raises_no_level(downgrade: UpgradeType) -> None:
    refusal, _ = decide_feature_updates([FeatureUpdate(ELIGIBLE, 1, downgrade)], DISABLED)
    assert refusal is not None
    assert refusal.message == f"{PREFIX}1 for feature {ELIGIBLE}. Can't downgrade to a newer version."


def test_one_refused_update_refuses_all() -> None:
    updates = [FeatureUpdate(ELIGIBLE, 0, SAFE), FeatureUpdate("transaction.version", 5)]
    refusal, changes = decide_feature_updates(updates, CLUSTER)
    assert refusal is not None
    assert changes == []


def test_the_last_update_of_a_feature_counts() -> None:
    updates = [FeatureUpdate(ELIGIBLE, 7), FeatureUpdate(ELIGIBLE, 0, SAFE)]
    assert decide_feature_updates(updates, CLUSTER) == (None, [FeatureLevelChanged(ELIGIBLE, 0)])
