"""A broker's configuration with the dynamic settings of an image. Pure.

A stored setting that the broker cannot use is left out: it must keep a broker neither from following the metadata nor
from starting. The value that the broker has used last stays, or else that of its properties file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from odradek.configuration.config_types import ConfigError, ConfigResourceType
from odradek.configuration.dynamic_configs import usable_dynamic_configs

if TYPE_CHECKING:
    from collections.abc import Mapping

    from odradek.configuration.broker_configs import BrokerConfig
    from odradek.metadata.image import MetadataImage


class EffectiveConfig(NamedTuple):
    """`unusable` has the reasons why settings were left out, by their names."""

    config: BrokerConfig
    unusable: Mapping[str, str]


class _Dynamic(NamedTuple):
    default: dict[str, str]
    broker: dict[str, str]


def effective_config(static: BrokerConfig, image: MetadataImage, last: BrokerConfig | None = None) -> EffectiveConfig:
    """The settings of all brokers, then those of this one, over the static configuration."""
    stored = _Dynamic(
        usable_dynamic_configs(image.configs_of(ConfigResourceType.BROKER, ""), is_default=True),
        usable_dynamic_configs(image.configs_of(ConfigResourceType.BROKER, str(static.node_id)), is_default=False),
    )
    try:
        return EffectiveConfig(static.with_dynamic(*stored), {})
    except ConfigError as problem:
        error = problem
    used = _Dynamic({}, {}) if last is None else _dynamic_of(last)
    unusable: dict[str, str] = {}
    while True:
        name = error.name
        if name in stored.broker:
            _step_back(name, stored.broker, used.broker)
        elif name in stored.default:
            _step_back(name, stored.default, used.default)
        else:
            return _one_by_one(static, stored, used, unusable)
        unusable[name] = error.reason
        try:
            return EffectiveConfig(static.with_dynamic(*stored), unusable)
        except ConfigError as problem:
            error = problem


def _dynamic_of(config: BrokerConfig) -> _Dynamic:
    return _Dynamic(dict(config.dynamic_default_values), dict(config.dynamic_broker_values))


def _step_back(name: str, layer: dict[str, str], used: dict[str, str]) -> None:
    """Restores the value that was used last. If that is the present one, or there is none, the setting is left out."""
    last = used.pop(name, None)
    if last is None or last == layer[name]:
        del layer[name]
    else:
        layer[name] = last


def _one_by_one(static: BrokerConfig, stored: _Dynamic, used: _Dynamic, unusable: dict[str, str]) -> EffectiveConfig:
    """For an error that names another setting than the one at fault: each setting that fits those before it."""
    config = static
    for layer in (0, 1):
        for name, value in stored[layer].items():
            for candidate in filter(None, (value, used[layer].get(name))):
                accepted = _dynamic_of(config)
                accepted[layer][name] = candidate
                try:
                    config = static.with_dynamic(*accepted)
                    break
                except ConfigError as problem:
                    unusable.setdefault(name, problem.reason)
    return EffectiveConfig(config, unusable)
