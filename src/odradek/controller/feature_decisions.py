"""UpdateFeatures: new levels of features, all or none. Pure.

The checks and messages are those of Kafka's FeatureControlManager. Departure from Kafka: a level that is set already
is not committed again.
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, NamedTuple

from odradek.metadata.changes import FeatureLevelChanged
from odradek.metadata.features import SUPPORTED_FEATURES
from odradek.protocol.errors import ErrorCode
from odradek.protocol.refusal import Refusal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from odradek.controller.topic_decisions import Cluster
    from odradek.metadata.changes import Change


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
    return None, changes


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
