"""A broker's configuration with the dynamic settings of an image. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.configuration.config_types import ConfigResourceType
from odradek.configuration.dynamic_configs import usable_dynamic_configs

if TYPE_CHECKING:
    from odradek.configuration.broker_configs import BrokerConfig
    from odradek.metadata.image import MetadataImage


def effective_config(static: BrokerConfig, image: MetadataImage) -> BrokerConfig:
    """The settings of all brokers, then those of this one, over the static configuration."""
    return static.with_dynamic(
        usable_dynamic_configs(image.configs_of(ConfigResourceType.BROKER, ""), is_default=True),
        usable_dynamic_configs(image.configs_of(ConfigResourceType.BROKER, str(static.node_id)), is_default=False),
    )
