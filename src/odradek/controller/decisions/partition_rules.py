"""The rules of a topic's partitions: its settings and the states of the brokers in an image. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from odradek.configuration.topic_config_table import TOPIC_CONFIGS
from odradek.controller.decisions.partition_change import PartitionRules
from odradek.metadata.features import ELIGIBLE_LEADER_REPLICAS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from odradek.configuration.broker_configs import BrokerConfig
    from odradek.configuration.config_types import Value
    from odradek.metadata.entities import TopicImage
    from odradek.metadata.image import MetadataImage

MIN_IN_SYNC = "min.insync.replicas"
UNCLEAN_ELECTION = "unclean.leader.election.enable"


class TopicRules:
    """The rules of every topic of one image; brokers are looked up once."""

    def __init__(self, image: MetadataImage, config: BrokerConfig) -> None:
        self._image = image
        self._config = config
        self.active_brokers = active_brokers(image)
        self._keeps_eligible_leaders = image.feature_level(ELIGIBLE_LEADER_REPLICAS) > 0
        self.can_lead: Callable[[int], bool] = self.active_brokers.__contains__

    def of(self, topic: TopicImage) -> PartitionRules:
        overrides = self._image.topic_overrides(topic.name)
        return PartitionRules(
            min_in_sync=cast("int", self._value(overrides, MIN_IN_SYNC)),
            allows_unclean=cast("bool", self._value(overrides, UNCLEAN_ELECTION)),
            can_lead=self.can_lead,
            keeps_eligible_leaders=self._keeps_eligible_leaders,
        )

    def _value(self, overrides: Mapping[str, str], name: str) -> Value:
        text = overrides.get(name)
        return self._config.topic_defaults[name] if text is None else TOPIC_CONFIGS[name].parse(text)


def active_brokers(image: MetadataImage) -> frozenset[int]:
    return frozenset(broker.node_id for broker in image.brokers.values() if broker.is_active)
