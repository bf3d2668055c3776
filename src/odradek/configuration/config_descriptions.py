"""The settings in a DescribeConfigs response: value, source and synonyms of each.

The order of synonyms and the sources are Kafka's, quirks included: a topic's `retention.ms` that comes from
`log.retention.hours` has no synonyms there either, because the list begins at `log.retention.ms`.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from odradek.configuration.broker_config_table import BROKER_CONFIGS
from odradek.configuration.client_metrics_configs import CLIENT_METRICS_CONFIGS, effective_client_metrics_values
from odradek.configuration.config_types import (
    ConfigDefinition,
    ConfigEntry,
    ConfigSource,
    ConfigSynonym,
    ConfigType,
    UpdateMode,
    Value,
    format_value,
)
from odradek.configuration.dynamic_configs import config_type, update_mode
from odradek.configuration.group_configs import GROUP_CONFIGS, effective_group_values
from odradek.configuration.known_properties import base_name
from odradek.configuration.topic_configs import TOPIC_CONFIGS, effective_topic_values

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from odradek.configuration.broker_configs import BrokerConfig

_NO_MEANING = "Kafka setting that Odradek does not use."

# Synonyms in other units, the finest unit first; the flush interval has them in this direction only.
_BROKER_SYNONYMS = {
    name: group
    for group in (
        ("log.roll.ms", "log.roll.hours"),
        ("log.roll.jitter.ms", "log.roll.jitter.hours"),
        ("log.retention.ms", "log.retention.minutes", "log.retention.hours"),
    )
    for name in group
} | {"log.flush.interval.ms": ("log.flush.interval.ms", "log.flush.scheduler.interval.ms")}


def describe_topic_configs(
    overrides: Mapping[str, str],
    broker: BrokerConfig,
    names: Collection[str] | None = None,
    inherited: Mapping[str, str] | None = None,
) -> list[ConfigEntry]:
    """A topic's settings, or those in `names` only. `inherited` are those of its stream."""
    inherited = inherited or {}
    values = effective_topic_values({**inherited, **overrides}, broker)
    return [
        _overridable_entry(
            definition,
            values[name],
            overrides,
            ConfigSource.DYNAMIC_TOPIC_CONFIG,
            _stream_synonyms(name, inherited)
            + (broker_synonyms(definition.synonyms[0].name, broker) if definition.synonyms else ()),
        )
        for name, definition in TOPIC_CONFIGS.items()
        if _is_wanted(name, names) and (not definition.is_internal or name in overrides or name in inherited)
    ]


def _stream_synonyms(name: str, inherited: Mapping[str, str]) -> tuple[ConfigSynonym, ...]:
    """Kafka has no source for the value of a stream. With this one, clients see that it is no default of the topic."""
    if name not in inherited:
        return ()
    text = format_value(TOPIC_CONFIGS[name].parse(inherited[name]))
    return (ConfigSynonym(name, text, ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG),)


def describe_group_configs(
    overrides: Mapping[str, str], broker: BrokerConfig, names: Collection[str] | None = None
) -> list[ConfigEntry]:
    values = effective_group_values(overrides, broker)
    return [
        _overridable_entry(
            definition,
            values[name],
            overrides,
            ConfigSource.DYNAMIC_GROUP_CONFIG,
            broker_synonyms(definition.synonyms[0].name, broker)
            if definition.synonyms
            else (ConfigSynonym(name, format_value(definition.default), ConfigSource.DEFAULT_CONFIG),),
        )
        for name, definition in GROUP_CONFIGS.items()
        if _is_wanted(name, names)
    ]


def describe_client_metrics_configs(
    overrides: Mapping[str, str], names: Collection[str] | None = None
) -> list[ConfigEntry]:
    values = effective_client_metrics_values(overrides)
    return [
        _overridable_entry(definition, values[name], overrides, ConfigSource.DYNAMIC_CLIENT_METRICS_CONFIG, ())
        for name, definition in CLIENT_METRICS_CONFIGS.items()
        if _is_wanted(name, names)
    ]


def describe_broker_configs(broker: BrokerConfig, names: Collection[str] | None = None) -> list[ConfigEntry]:
    """This broker's settings: all that Odradek uses, and every other property that is set."""
    texts = {**broker.static_values, **broker.dynamic_default_values, **broker.dynamic_broker_values}
    shown = {name: format_value(broker.values[name]) for name, each in BROKER_CONFIGS.items() if not each.is_internal}
    return [_broker_entry(name, text, broker) for name, text in {**texts, **shown}.items() if _is_wanted(name, names)]


def describe_default_broker_configs(broker: BrokerConfig, names: Collection[str] | None = None) -> list[ConfigEntry]:
    """The dynamic settings of all brokers: the resource with an empty name."""
    return [
        _broker_entry(name, text, broker, only_default=True)
        for name, text in broker.dynamic_default_values.items()
        if _is_wanted(name, names)
    ]


def broker_synonyms(name: str, broker: BrokerConfig) -> tuple[ConfigSynonym, ...]:
    """Every source of a value for this broker property, in order of precedence."""
    base = base_name(name)
    names = _BROKER_SYNONYMS.get(name, (name,) if base == name else (name, base))
    defaults = {each: format_value(BROKER_CONFIGS[each].default) for each in names if each in BROKER_CONFIGS}
    is_sensitive = config_type(name) in (None, ConfigType.PASSWORD)
    found = [
        ConfigSynonym(each, None if is_sensitive else text, source)
        for source, texts in (
            (ConfigSource.DYNAMIC_BROKER_CONFIG, broker.dynamic_broker_values),
            (ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG, broker.dynamic_default_values),
            (ConfigSource.STATIC_BROKER_CONFIG, broker.static_values),
            (ConfigSource.DEFAULT_CONFIG, defaults),
        )
        for each in names
        if (text := texts.get(each)) is not None
    ]
    return tuple(itertools.dropwhile(lambda synonym: synonym.name != name, found))


def _is_wanted(name: str, names: Collection[str] | None) -> bool:
    return not names or name in names


def _overridable_entry(
    definition: ConfigDefinition,
    value: Value,
    overrides: Mapping[str, str],
    own_source: ConfigSource,
    inherited: tuple[ConfigSynonym, ...],
) -> ConfigEntry:
    text = format_value(value)
    own = (ConfigSynonym(definition.name, text, own_source),) if definition.name in overrides else ()
    synonyms = own + inherited
    return ConfigEntry(
        name=definition.name,
        value=text,
        source=synonyms[0].source if synonyms else ConfigSource.DEFAULT_CONFIG,
        is_sensitive=definition.is_sensitive,
        is_read_only=False,
        type=definition.type,
        documentation=definition.doc,
        synonyms=synonyms,
    )


def _broker_entry(name: str, text: str | None, broker: BrokerConfig, *, only_default: bool = False) -> ConfigEntry:
    synonyms = broker_synonyms(name, broker)
    if only_default:
        synonyms = tuple(each for each in synonyms if each.source is ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG)
    kind = config_type(name)
    # An unknown setting may be a plug-in's password, so its value is never shown.
    is_sensitive = kind in (None, ConfigType.PASSWORD)
    return ConfigEntry(
        name=name,
        value=None if is_sensitive else text,
        source=synonyms[0].source if synonyms else ConfigSource.DEFAULT_CONFIG,
        is_sensitive=is_sensitive,
        is_read_only=update_mode(name) in (None, UpdateMode.READ_ONLY),
        type=kind or ConfigType.UNKNOWN,
        documentation=BROKER_CONFIGS[name].doc if name in BROKER_CONFIGS else _NO_MEANING,
        synonyms=synonyms,
    )
