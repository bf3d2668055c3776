"""The controller's decisions about settings of topics, brokers, groups and metrics subscriptions. Pure.

The changes of one resource are accepted or refused together. Refusals have Apache Kafka's codes and messages.
"""

from __future__ import annotations

import enum
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from odradek.configuration.broker_config_table import BROKER_CONFIGS
from odradek.configuration.client_metrics_configs import CLIENT_METRICS_CONFIGS, check_client_metrics_configs
from odradek.configuration.config_types import ConfigResourceType, ConfigType, format_value
from odradek.configuration.dynamic_configs import check_dynamic_configs, check_dynamic_names
from odradek.configuration.group_configs import GROUP_CONFIGS, check_group_configs
from odradek.configuration.known_properties import KNOWN_PROPERTIES
from odradek.configuration.topic_configs import TOPIC_CONFIGS, check_topic_configs
from odradek.controller.decisions.partition_rules import MIN_IN_SYNC
from odradek.conventions.dataclass import dataclass
from odradek.metadata.changes import ConfigsChanged
from odradek.metadata.features import ELIGIBLE_LEADER_REPLICAS
from odradek.metadata.image import merge
from odradek.metadata.topic_names import illegal_name_reason
from odradek.protocol.errors import ErrorCode
from odradek.protocol.refusal import Refusal

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from odradek.configuration.broker_configs import BrokerConfig
    from odradek.metadata.image import MetadataImage

MAX_VALUE_LENGTH = 32767

_TABLES = {
    ConfigResourceType.TOPIC: TOPIC_CONFIGS,
    ConfigResourceType.BROKER: BROKER_CONFIGS,
    ConfigResourceType.GROUP: GROUP_CONFIGS,
    ConfigResourceType.CLIENT_METRICS: CLIENT_METRICS_CONFIGS,
}


class AlterOperation(enum.IntEnum):
    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class ConfigOperation(NamedTuple):
    """`operation` is the code that the client sent, which may be unknown."""

    name: str
    operation: int
    value: str | None


@dataclass(frozen=True, slots=True)
class ConfigAlteration:
    """Single changes to one resource's settings (IncrementalAlterConfigs)."""

    resource_type: int
    resource_name: str
    operations: Sequence[ConfigOperation]


@dataclass(frozen=True, slots=True)
class ConfigReplacement:
    """All settings of one resource; a setting that is not named returns to its default (AlterConfigs)."""

    resource_type: int
    resource_name: str
    values: Sequence[tuple[str, str | None]]


def may_change_setting(request: ConfigAlteration | ConfigReplacement, name: str) -> bool:
    """A replacement resets every setting that it does not name."""
    return isinstance(request, ConfigReplacement) or any(each.name == name for each in request.operations)


def repeated_resources(requests: Iterable[ConfigAlteration | ConfigReplacement]) -> set[tuple[int, str]]:
    counts = Counter((request.resource_type, request.resource_name) for request in requests)
    return {resource for resource, count in counts.items() if count > 1}


def decide_replacement(
    request: ConfigReplacement, image: MetadataImage, config: BrokerConfig
) -> ConfigsChanged | Refusal:
    refusal = _check_names(
        [name for name, _ in request.values], [name for name, text in request.values if text is None]
    )
    if refusal is not None:
        return refusal
    resource_type = _resource_type(request.resource_type)
    if isinstance(resource_type, Refusal):
        return resource_type
    removed = dict.fromkeys(image.configs_of(resource_type, request.resource_name))
    changes: dict[str, str | None] = {**removed, **dict(request.values)}
    return _decide(resource_type, request.resource_name, changes, image, config)


def decide_alteration(
    request: ConfigAlteration, image: MetadataImage, config: BrokerConfig
) -> ConfigsChanged | Refusal:
    nulls = [each.name for each in request.operations if each.value is None and each.operation != AlterOperation.DELETE]
    refusal = _check_names([each.name for each in request.operations], nulls)
    if refusal is not None:
        return refusal
    resource_type = _resource_type(request.resource_type)
    if isinstance(resource_type, Refusal):
        return resource_type
    current = image.configs_of(resource_type, request.resource_name)
    if resource_type is ConfigResourceType.TOPIC:  # a list of the stream's is appended to
        current = image.topic_overrides(request.resource_name)
    changes: dict[str, str | None] = {}
    for each in request.operations:
        value = _altered_value(each, resource_type, current.get(each.name))
        if isinstance(value, Refusal):
            return value
        changes[each.name] = value
    return _decide(resource_type, request.resource_name, changes, image, config)


def _check_names(names: Sequence[str], nulls: Sequence[str]) -> Refusal | None:
    if len(set(names)) != len(names):
        return Refusal(ErrorCode.INVALID_REQUEST, "Error due to duplicate config keys")
    if nulls:
        return Refusal(ErrorCode.INVALID_REQUEST, f"Null value not supported for : {', '.join(nulls)}")
    return None


def _resource_type(code: int) -> ConfigResourceType | Refusal:
    for resource_type in _TABLES:
        if resource_type == code:
            return resource_type
    return Refusal(ErrorCode.INVALID_REQUEST, f"Unknown resource type {code}")


def _altered_value(
    change: ConfigOperation, resource_type: ConfigResourceType, current: str | None
) -> str | Refusal | None:
    if change.operation == AlterOperation.DELETE:
        return None
    if change.operation == AlterOperation.SET:
        return change.value
    if change.operation not in (AlterOperation.APPEND, AlterOperation.SUBTRACT):
        return Refusal(ErrorCode.INVALID_REQUEST, f"Unknown operations type {change.operation}")
    operation = AlterOperation(change.operation)
    refusal = _check_is_list(resource_type, change.name, operation)
    if refusal is not None:
        return refusal
    if current is None and (definition := _TABLES[resource_type].get(change.name)) is not None:
        current = format_value(definition.default)
    entries = [entry for entry in (current or "").split(",") if entry]
    named = (change.value or "").split(",")
    return ",".join(_append(entries, named) if operation is AlterOperation.APPEND else _subtract(entries, named))


def _append(entries: Sequence[str], named: Iterable[str]) -> list[str]:
    present = set(entries)
    return [*entries, *(entry for entry in dict.fromkeys(named) if entry not in present)]


def _subtract(entries: Iterable[str], named: Iterable[str]) -> list[str]:
    """An entry that is there several times is removed as often as it is named, the first ones first."""
    to_remove = Counter(named)
    left = []
    for entry in entries:
        if to_remove[entry]:
            to_remove[entry] -= 1
        else:
            left.append(entry)
    return left


def _check_is_list(resource_type: ConfigResourceType, name: str, operation: AlterOperation) -> Refusal | None:
    definition = _TABLES[resource_type].get(name)
    kind = None if definition is None else definition.type
    if resource_type is ConfigResourceType.BROKER:
        if kind is None and name in KNOWN_PROPERTIES:
            kind = KNOWN_PROPERTIES[name].type
        if kind is None:
            return Refusal(ErrorCode.INVALID_CONFIG, f"Unknown config name: {name}")
        if kind is not ConfigType.LIST:
            reason = f"Config value {operation.name.lower()} is not allowed for config key: {name}"
            return Refusal(ErrorCode.INVALID_CONFIG, reason)
    # Kafka refuses to append to metrics subscriptions, although their settings are lists.
    elif kind is not ConfigType.LIST or resource_type is ConfigResourceType.CLIENT_METRICS:
        reason = f"Can't {operation.name} to key {name} because its type is not LIST."
        return Refusal(ErrorCode.INVALID_CONFIG, reason)
    return None


def _decide(
    resource_type: ConfigResourceType,
    name: str,
    changes: Mapping[str, str | None],
    image: MetadataImage,
    config: BrokerConfig,
) -> ConfigsChanged | Refusal:
    current = image.configs_of(resource_type, name)
    if any(value is not None and len(value) > MAX_VALUE_LENGTH for value in changes.values()):
        return Refusal(
            ErrorCode.INVALID_CONFIG,
            "The configuration value cannot be added because it exceeds the maximum value size of "
            f"{MAX_VALUE_LENGTH} bytes.",
        )
    after = merge(current, changes)
    refusal = _check(resource_type, name, after, image, config) or _check_min_in_sync(
        resource_type, name, changes, image
    )
    if refusal is not None:
        return refusal
    real = {key: value for key, value in changes.items() if current.get(key) != value}
    return ConfigsChanged(resource_type, name, real)


def _check(
    resource_type: ConfigResourceType, name: str, values: Mapping[str, str], image: MetadataImage, config: BrokerConfig
) -> Refusal | None:
    """Whether the resource exists and may have this combination of settings."""
    if resource_type is ConfigResourceType.TOPIC:
        return _check_topic(name, values, image, config)
    if resource_type is ConfigResourceType.BROKER:
        return _check_broker_name(name, image, config) or _check_broker(name, values, config)
    if resource_type is ConfigResourceType.GROUP:
        if not name:
            return Refusal(ErrorCode.INVALID_REQUEST, "Default group resources are not allowed.")
        return check_group_configs(values, config)
    return check_client_metrics_configs(name, values)


def _check_min_in_sync(
    resource_type: ConfigResourceType, name: str, changes: Mapping[str, str | None], image: MetadataImage
) -> Refusal | None:
    """While eligible leaders are kept, all brokers have one default (`features.decide_one_min_in_sync`)."""
    keeps_eligible_leaders = image.feature_level(ELIGIBLE_LEADER_REPLICAS) > 0
    if resource_type is not ConfigResourceType.BROKER or MIN_IN_SYNC not in changes or not keeps_eligible_leaders:
        return None
    if name:
        return Refusal(ErrorCode.INVALID_CONFIG, f"Broker-level {MIN_IN_SYNC} cannot be altered while ELR is enabled.")
    if changes[MIN_IN_SYNC] is None:
        return Refusal(ErrorCode.INVALID_CONFIG, f"Cluster-level {MIN_IN_SYNC} cannot be removed while ELR is enabled.")
    return None


def _check_topic(name: str, values: Mapping[str, str], image: MetadataImage, config: BrokerConfig) -> Refusal | None:
    if not name:
        return Refusal(ErrorCode.INVALID_REQUEST, "Default topic resources are not allowed.")
    reason = illegal_name_reason(name)
    if reason is not None:
        return Refusal(ErrorCode.INVALID_TOPIC_EXCEPTION, reason)
    refusal = check_topic_configs(image.with_inherited(name, values), config)
    if refusal is None and name not in image.topics:
        return Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{name}' does not exist.")
    return refusal


def _check_broker(name: str, values: Mapping[str, str], config: BrokerConfig) -> Refusal | None:
    """Another broker has checked its settings with its own properties file (`handlers/own_settings`): this one checks
    names and types."""
    if name and int(name) != config.node_id:
        return check_dynamic_names(values, is_default=False)
    return check_dynamic_configs(config, values, is_default=not name)


def _check_broker_name(name: str, image: MetadataImage, config: BrokerConfig) -> Refusal | None:
    """An empty name stands for all brokers; otherwise it must be the id of this broker or of a registered one."""
    if not name:
        return None
    if not name.removeprefix("-").isdecimal():
        return Refusal(ErrorCode.INVALID_REQUEST, f"Node id must be an integer, but it is: {name}")
    if int(name) != config.node_id and int(name) not in image.brokers:
        return Refusal(
            ErrorCode.INVALID_REQUEST, f"Unexpected broker id, expected {config.node_id}, but received {name}"
        )
    return None
