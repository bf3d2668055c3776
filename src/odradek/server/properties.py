"""Loads settings from a Java .properties file, then the environment, then the command line.

Later values override earlier ones. Every value keeps its origin, so that an error names the line or variable to fix.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from odradek.configuration.broker_configs import BrokerConfig, known_names
from odradek.configuration.config_types import ConfigError
from odradek.configuration.known_properties import UnknownPropertyError, is_known

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

VARIABLE_PREFIX = "ODRADEK_"

_NATURAL_LINE = re.compile(r"\r\n|\r|\n")
_BLANK = " \t\f"
_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|u|.)", re.DOTALL)
_KEY = re.compile(r"(?:\\.|[^\\=: \t\f])*", re.DOTALL)
_SEPARATOR = re.compile(r"[ \t\f]*[=:]?[ \t\f]*")


class PropertiesError(ValueError):
    """An invalid setting; the message names its origin and the problem."""


class Property(NamedTuple):
    value: str
    origin: str


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


def parse_properties(text: str, file_name: str) -> dict[str, Property]:
    """Parses the format of java.util.Properties; the last of several values for a key wins."""
    properties = {}
    for line_number, line in _logical_lines(text):
        origin = f"{file_name} line {line_number}"
        key_match = _KEY.match(line)
        key_end = key_match.end() if key_match else 0
        separator = _SEPARATOR.match(line, key_end)
        value = line[separator.end() if separator else key_end :]
        properties[_unescape(line[:key_end], origin)] = Property(_unescape(value, origin), origin)
    return properties


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Logical lines: continuations joined, without comments and blank lines; each with the number of its first line."""
    pending = ""
    first_number = 0
    for number, natural in enumerate(_NATURAL_LINE.split(text), 1):
        line = natural.lstrip(_BLANK)
        if not pending:
            if not line or line[0] in "#!":
                continue
            first_number = number
        if _continues(line):
            pending += line[:-1]
            continue
        yield first_number, pending + line
        pending = ""
    if pending:
        yield first_number, pending


def _continues(line: str) -> bool:
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1


def _unescape(text: str, origin: str) -> str:
    def replace(match: re.Match[str]) -> str:
        code = match[1]
        if code == "u":
            raise PropertiesError(f"{origin}: \\u must be followed by four hexadecimal digits")
        if len(code) == 5:
            return chr(int(code[1:], 16))
        return _ESCAPES.get(code, code)

    plain = _ESCAPE.sub(replace, text)
    # Java's strings are UTF-16: two escapes may form one character.
    return plain.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


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
