"""Which broker settings can change at run time, and to which values: Kafka's rules, in Kafka's order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.configuration.broker_config_table import BROKER_CONFIGS
from odradek.configuration.config_types import ConfigError, ConfigType, UpdateMode, parse_value
from odradek.configuration.known_properties import KNOWN_PROPERTIES, base_name
from odradek.protocol.errors import ErrorCode
from odradek.protocol.refusal import Refusal

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from odradek.configuration.broker_configs import BrokerConfig

# A keystore belongs to one listener; these change only with the prefix listener.name.<listener>.
_PER_LISTENER = frozenset(
    f"ssl.{name}"
    for name in (
        "key.password",
        "keystore.certificate.chain",
        "keystore.key",
        "keystore.location",
        "keystore.password",
        "keystore.type",
        "truststore.certificates",
        "truststore.location",
        "truststore.password",
        "truststore.type",
    )
)
_TOKEN_ISSUERS = "sasl.oauthbearer."
_CLUSTER_LEVEL_LISTENER_CONFIGS = frozenset({"max.connections", "max.connection.creation.rate", "num.network.threads"})


def update_mode(name: str) -> UpdateMode | None:
    """None for a name that Kafka does not know: such a setting is kept for plug-ins, and never shown."""
    if name in BROKER_CONFIGS:
        return BROKER_CONFIGS[name].update_mode
    if _TOKEN_ISSUERS in name:  # of one listener or mechanism; who may alter settings must not name an issuer of tokens
        return UpdateMode.READ_ONLY
    return KNOWN_PROPERTIES[name].update_mode if name in KNOWN_PROPERTIES else None


def config_type(name: str) -> ConfigType | None:
    for candidate in (name, base_name(name)):
        if candidate in BROKER_CONFIGS:
            return BROKER_CONFIGS[candidate].type
        if candidate in KNOWN_PROPERTIES:
            return KNOWN_PROPERTIES[candidate].type
    return None


def check_dynamic_configs(config: BrokerConfig, values: Mapping[str, str], *, is_default: bool) -> Refusal | None:
    """Whether the broker (or, with `is_default`, every broker) may have these settings."""
    refusal = check_dynamic_names(values, is_default=is_default)
    if refusal is not None:
        return refusal
    try:
        if is_default:
            config.with_dynamic(values, config.dynamic_broker_values)
        else:
            config.with_dynamic(config.dynamic_default_values, values)
    except ConfigError as error:
        return Refusal(ErrorCode.INVALID_REQUEST, str(error))
    return None


def check_dynamic_names(values: Mapping[str, str], *, is_default: bool) -> Refusal | None:
    """Whether these settings can be dynamic, and have the right types, on any broker."""
    frozen = [name for name in values if update_mode(name) is UpdateMode.READ_ONLY]
    if frozen:
        return _refuse("Cannot update these configs dynamically", frozen)
    if bare := [name for name in values if name in _PER_LISTENER]:
        return _refuse(
            "These security configs can be dynamically updated only per-listener using the listener prefix", bare
        )
    try:
        for name, text in values.items():
            _check_type(name, text)
    except ConfigError as error:
        return Refusal(ErrorCode.INVALID_REQUEST, str(error))
    if is_default and (own := [name for name in values if _is_per_broker(name)]):
        return _refuse("Cannot update these configs at default cluster level, broker id must be specified", own)
    return None


def usable_dynamic_configs(values: Mapping[str, str], *, is_default: bool) -> dict[str, str]:
    """The stored settings that this version accepts."""
    usable = {}
    for name, text in values.items():
        try:
            _check_type(name, text)
        except ConfigError:
            continue
        if update_mode(name) is not UpdateMode.READ_ONLY and not (is_default and _is_per_broker(name)):
            usable[name] = text
    return usable


def _check_type(name: str, text: str) -> None:
    base = base_name(name)
    if base in BROKER_CONFIGS:
        BROKER_CONFIGS[base].parse(text)
    elif base in KNOWN_PROPERTIES:
        parse_value(name, KNOWN_PROPERTIES[base].type, text)


def _is_per_broker(name: str) -> bool:
    base = base_name(name)
    if base != name:
        return base not in _CLUSTER_LEVEL_LISTENER_CONFIGS
    return update_mode(name) is UpdateMode.PER_BROKER


def _refuse(reason: str, names: Iterable[str]) -> Refusal:
    return Refusal(ErrorCode.INVALID_REQUEST, f"{reason}: [{', '.join(sorted(names))}]")
