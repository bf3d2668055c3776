"""UpdateFeatures: new levels of features, all or none. Pure.

The checks and messages are those of Kafka's FeatureControlManager. Departure from Kafka: a level that is set already
is not committed again.
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, NamedTuple

from odradek.configuration.broker_config_table import BROKER_CONFIGS
from odradek.configuration.config_types import ConfigResourceType, format_value
from odradek.controller.decisions.partition_rules import MIN_IN_SYNC
from odradek.metadata.changes import ConfigsChanged, FeatureLevelChanged
from odradek.metadata.features import ELIGIBLE_LEADER_REPLICAS, SUPPORTED_FEATURES
from odradek.protocol.errors import ErrorCode
from odradek.protocol.refusal import Refusal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from odradek.configuration.broker_configs import BrokerConfig
    from odradek.controller.decisions.topics import Cluster
    from odradek.metadata.changes import Change
    from odradek.metadata.image import MetadataImage


class UpgradeType(enum.IntEnum):
    """The direction that a client allows; the two kinds of downgrade differ for `metadata.version` in Kafka only."""

    UPGRADE = 1
    SAFE_DOWNGRADE = 2
    UNSAFE_DOWNGRADE = 3


class FeatureUpdate(NamedTuple):
    """`upgrade_type` as the client sent it."""

    name: str
    level: int
    upgrade_type: int = UpgradeType.UPGRADE


def decide_feature_updates(updates: Sequence[FeatureUpdate], cluster: Cluster) -> tuple[Refusal | None, list[Change]]:
    """The last one counts of several updates of a feature."""
    changes: list[Change] = []
    for update in {each.name: each for each in updates}.values():
        reason = _reason_against(update, cluster)
        if reason is not None:
            problem = f"Invalid update version {update.level} for feature {update.name}. {reason}"
            return Refusal(
                ErrorCode.INVALID_UPDATE_VERSION,
                f"The update failed for all features since the following feature had an error: {problem}",
            ), []
        if update.level != cluster.image.feature_level(update.name):
            changes.append(FeatureLevelChanged(update.name, update.level))
    if changes:
        changes += decide_one_min_in_sync(cluster.image.apply_all(changes), cluster.config)
    return None, changes


def decide_one_min_in_sync(image: MetadataImage, config: BrokerConfig) -> list[Change]:
    """While eligible leaders are kept, the controller and all brokers have one default of `min.insync.replicas`: a
    setting of the cluster, which begins as that of the controller's properties, and of no single broker."""
    if image.feature_level(ELIGIBLE_LEADER_REPLICAS) == 0:
        return []
    changes: list[Change] = [
        ConfigsChanged(resource.type, resource.name, {MIN_IN_SYNC: None})
        for resource, values in image.configs.items()
        if resource.type is ConfigResourceType.BROKER and resource.name and MIN_IN_SYNC in values
    ]
    if MIN_IN_SYNC not in image.configs_of(ConfigResourceType.BROKER, ""):
        value = config.static_values.get(MIN_IN_SYNC) or format_value(BROKER_CONFIGS[MIN_IN_SYNC].default)
        changes.append(ConfigsChanged(ConfigResourceType.BROKER, "", {MIN_IN_SYNC: value}))
    return changes


def _reason_against(update: FeatureUpdate, cluster: Cluster) -> str | None:
    if update.upgrade_type not in list(UpgradeType):
        return "The controller does not support the given upgrade type."
    if update.level < 0:
        return "A feature version cannot be less than 0."
    supported = SUPPORTED_FEATURES.get(update.name)
    node_id = cluster.config.node_id
    if supported is None:
        return f"Local controller {node_id} does not support this feature."
    if not supported.smallest <= update.level <= supported.largest:
        return f"Local controller {node_id} only supports versions {supported}"
    current = cluster.image.feature_level(update.name)
    if update.level < current and update.upgrade_type == UpgradeType.UPGRADE:
        return (
            "Can't downgrade the version of this feature without setting the upgrade type to either safe or unsafe "
            "downgrade."
        )
    if update.level > current and update.upgrade_type != UpgradeType.UPGRADE:
        return "Can't downgrade to a newer version."
    return None
