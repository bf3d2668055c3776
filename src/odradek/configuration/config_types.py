"""The definition of a setting: name, type, default, allowed values, and its conversion from text and back.

Types, sources and resource types carry the codes of Kafka's DescribeConfigs. Nothing here knows a particular setting.
"""

import enum
import math
import re
from collections.abc import Callable
from decimal import Decimal

from odradek.conventions.dataclass import dataclass

Value = bool | int | float | str | tuple[str, ...] | None
# Returns a description of the allowed values when a value is not allowed, and None when it is.
Validator = Callable[[Value], str | None]


class ConfigType(enum.IntEnum):
    UNKNOWN = 0
    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


class ConfigSource(enum.IntEnum):
    UNKNOWN = 0
    DYNAMIC_TOPIC_CONFIG = 1
    DYNAMIC_BROKER_CONFIG = 2
    DYNAMIC_DEFAULT_BROKER_CONFIG = 3
    STATIC_BROKER_CONFIG = 4
    DEFAULT_CONFIG = 5
    DYNAMIC_BROKER_LOGGER_CONFIG = 6
    DYNAMIC_CLIENT_METRICS_CONFIG = 7
    DYNAMIC_GROUP_CONFIG = 8


class ConfigResourceType(enum.IntEnum):
    UNKNOWN = 0
    ANY = 1
    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


class UpdateMode(enum.Enum):
    """Whether a broker setting can change at run time, and for which brokers."""

    READ_ONLY = "read-only"
    PER_BROKER = "per-broker"
    CLUSTER_WIDE = "cluster-wide"


class ConfigError(ValueError):
    """A setting that cannot be used. The text names property, value and allowed values, in Kafka's wording."""

    def __init__(self, name: str, value: object, reason: str) -> None:
        super().__init__(f"Invalid value {value} for configuration {name}: {reason}")
        self.name = name
        self.value = value
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Synonym:
    """A broker property that gives a topic setting its default; `factor` turns hours or minutes into milliseconds."""

    name: str
    factor: int = 1


@dataclass(frozen=True, slots=True)
class ConfigDefinition:
    name: str
    type: ConfigType
    default: Value
    doc: str
    validator: Validator | None = None
    synonyms: tuple[Synonym, ...] = ()
    update_mode: UpdateMode = UpdateMode.READ_ONLY
    is_internal: bool = False

    @property
    def is_sensitive(self) -> bool:
        return self.type is ConfigType.PASSWORD

    def parse(self, text: str) -> Value:
        value = parse_value(self.name, self.type, text)
        if self.validator is not None and (complaint := self.validator(value)) is not None:
            raise ConfigError(self.name, format_value(value), complaint)
        return value


@dataclass(frozen=True, slots=True)
class ConfigSynonym:
    """One source of a value, used or overridden."""

    name: str
    value: str | None
    source: ConfigSource


@dataclass(frozen=True, slots=True)
class ConfigEntry:
    """One setting in a DescribeConfigs response."""

    name: str
    value: str | None
    source: ConfigSource
    is_sensitive: bool
    is_read_only: bool
    type: ConfigType
    documentation: str
    synonyms: tuple[ConfigSynonym, ...] = ()


_INTEGER = re.compile(r"[+-]?[0-9]+", re.ASCII)
_COMMA = re.compile(r"\s*,\s*")
_BITS = {ConfigType.INT: 32, ConfigType.SHORT: 16, ConfigType.LONG: 64}


def parse_value(name: str, config_type: ConfigType, text: str) -> Value:
    trimmed = text.strip()
    if config_type is ConfigType.BOOLEAN:
        if trimmed.lower() not in ("true", "false"):
            raise ConfigError(name, text, "Expected value to be either true or false")
        return trimmed.lower() == "true"
    if config_type in _BITS:
        return _parse_integer(name, config_type, trimmed)
    if config_type is ConfigType.DOUBLE:
        return _parse_double(name, trimmed)
    if config_type is ConfigType.LIST:
        # Repeated entries count once, as in Kafka 4.3.
        return tuple(dict.fromkeys(_COMMA.split(trimmed))) if trimmed else ()
    return trimmed


def _parse_integer(name: str, config_type: ConfigType, text: str) -> int:
    limit = 1 << (_BITS[config_type] - 1)
    # Nineteen digits and a sign hold every long; longer texts are refused before they are parsed.
    if _INTEGER.fullmatch(text) and len(text) <= 20 and -limit <= (number := int(text)) < limit:
        return number
    raise ConfigError(name, text, f"Not a number of type {config_type.name}")


def _parse_double(name: str, text: str) -> float:
    try:
        number = float(text.replace("_", "?"))
    except ValueError:
        number = float("nan")
    if math.isnan(number):  # a double in Java, but not a valid setting
        raise ConfigError(name, text, "Not a number of type DOUBLE")
    return number


def format_value(value: Value) -> str | None:
    """The text Kafka would show for a value."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return ",".join(value)
    if isinstance(value, float):
        return _format_double(value)
    return str(value)


def _format_double(value: float) -> str:
    if abs(value) == float("inf"):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value)
    # Java writes 1.0E8 where Python writes 100000000.0, and 1.0E-5 for 1e-05.
    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    fraction = "".join(map(str, digits[1:])) or "0"
    return f"{'-' if sign else ''}{digits[0]}.{fraction}E{len(digits) - 1 + int(exponent)}"


def at_least(minimum: float) -> Validator:
    return between(minimum, None)


def between(minimum: float, maximum: float | None) -> Validator:
    def check(value: Value) -> str | None:
        if not isinstance(value, (int, float)):
            return "Value must be non-null"
        if value < minimum:
            return f"Value must be at least {minimum}"
        if maximum is not None and value > maximum:
            return f"Value must be no more than {maximum}"
        return None

    return check


def one_of(*choices: str) -> Validator:
    def check(value: Value) -> str | None:
        return None if value in choices else f"String must be one of: {', '.join(choices)}"

    return check


def list_of(*choices: str, may_be_empty: bool = True) -> Validator:
    """A list without empty entries, and only of these words if any are given."""

    def check(value: Value) -> str | None:
        entries = value if isinstance(value, tuple) else ()
        if not entries and not may_be_empty:
            return f"must not be empty; allowed: {', '.join(choices) or 'any non-empty value'}"
        if "" in entries:
            return "values must not be empty"
        if choices and not set(entries) <= set(choices):
            return f"String must be one of: {', '.join(choices)}"
        return None

    return check
