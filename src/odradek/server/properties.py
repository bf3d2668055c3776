"""Loads settings from a Java .properties file, then the environment, then the command line.

Later values override earlier ones. Every value keeps its origin, so that an error names the line or variable to fix.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.configuration.broker_configs import BrokerConfig, known_names
from odradek.configuration.config_types import ConfigError
from odradek.configuration.known_properties import UnknownPropertyError, is_known
from odradek.conventions.properties_file import PropertiesError, Property, parse_properties

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

VARIABLE_PREFIX = "ODRADEK_"


def load_properties(
    file_text: str | None,
    environment: Mapping[str, str],
    overrides: Sequence[str],
    *,
    file_name: str = "server.properties",
    other_variables: Collection[str] = (),
) -> dict[str, Property]:
    """All settings by name. `other_variables` start with the prefix too, but are not properties."""
    properties: dict[str, Property] = {}
    if file_text is not None:
        properties |= parse_properties(file_text, file_name)
    properties |= _read_environment(environment, other_variables)
    for override in overrides:
        name, separator, value = override.partition("=")
        if not separator or not name.strip():
            raise PropertiesError(
                f"--override {override}: expected name=value, for example --override num.partitions=3"
            )
        properties[name.strip()] = Property(value.strip(), f"--override {override}")
    return properties


def broker_config(properties: Mapping[str, Property]) -> BrokerConfig:
    """The configuration, or an error that names the setting, its value, what is allowed and where it was set."""
    try:
        return BrokerConfig.from_properties({name: each.value for name, each in properties.items()})
    except ConfigError as error:
        origin = properties[error.name].origin if error.name in properties else None
        raise PropertiesError(f"{origin}: {error}" if origin else str(error)) from error


def _read_environment(environment: Mapping[str, str], other_variables: Collection[str]) -> dict[str, Property]:
    """Reads variables such as ODRADEK_LOG_DIRS (log.dirs); no property name has an underscore, so this is unique."""
    by_variable = {_variable_name(name): name for name in known_names()}
    properties = {}
    for variable in sorted(environment):
        if not variable.startswith(VARIABLE_PREFIX) or variable in other_variables:
            continue
        name = by_variable.get(variable, variable.removeprefix(VARIABLE_PREFIX).lower().replace("_", "."))
        origin = f"environment variable {variable}"
        if variable not in by_variable and not is_known(name):
            raise PropertiesError(f"{origin}: {UnknownPropertyError(name, known_names())}")
        properties[name] = Property(environment[variable], origin)
    return properties


def _variable_name(name: str) -> str:
    return VARIABLE_PREFIX + name.upper().replace(".", "_").replace("-", "_")
