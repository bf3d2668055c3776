"""How a setting's text becomes a value and back, and what the error says."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.configuration.config_types import (
    ConfigDefinition,
    ConfigError,
    ConfigType,
    Validator,
    Value,
    at_least,
    between,
    format_value,
    list_of,
    one_of,
    parse_value,
)


@pytest.mark.parametrize(
    ("config_type", "text", "value"),
    [
        (ConfigType.BOOLEAN, " TRUE ", True),
        (ConfigType.BOOLEAN, "false", False),
        (ConfigType.INT, "+7", 7),
        (ConfigType.INT, "-2147483648", -(2**31)),
        (ConfigType.SHORT, "32767", 32767),
        (ConfigType.LONG, "9223372036854775807", 2**63 - 1),
        (ConfigType.DOUBLE, "1e-3", 0.001),
        (ConfigType.LIST, "", ()),
        (ConfigType.LIST, " a , b,c ", ("a", "b", "c")),
        (ConfigType.LIST, "a,b,a", ("a", "b")),
        (ConfigType.STRING, "  spaced text ", "spaced text"),
        (ConfigType.PASSWORD, "secret", "secret"),
    ],
)
def test_text_is_read_as_kafka_reads_it(config_type: ConfigType, text: str, value: Value) -> None:
    assert parse_value("some.name", config_type, text) == value


@pytest.mark.parametrize(
    ("config_type", "text", "reason"),
    [
        (ConfigType.BOOLEAN, "yes", "Expected value to be either true or false"),
        (ConfigType.INT, "2147483648", "Not a number of type INT"),
        (ConfigType.INT, "1_000", "Not a number of type INT"),
        (ConfigType.INT, "", "Not a number of type INT"),
        (ConfigType.INT, "٣", "Not a number of type INT"),
        (ConfigType.SHORT, "32768", "Not a number of type SHORT"),
        (ConfigType.LONG, "9" * 5000, "Not a number of type LONG"),
        (ConfigType.DOUBLE, "1_0", "Not a number of type DOUBLE"),
        (ConfigType.DOUBLE, "nan", "Not a number of type DOUBLE"),
    ],
)
def test_malformed_value_is_refused_with_name_value_and_what_is_allowed(
    config_type: ConfigType, text: str, reason: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_value("some.name", config_type, text)
    assert str(caught.value) == f"Invalid value {text} for configuration some.name: {reason}"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, None),
        (True, "true"),
        (("a", "b"), "a,b"),
        (0.5, "0.5"),
        (1.0, "1.0"),
        (1e7, "1.0E7"),
        (2147483647.0, "2.147483647E9"),
        (1.7976931348623157e308, "1.7976931348623157E308"),
        (0.0001, "1.0E-4"),
        (-1.25e-7, "-1.25E-7"),
        (float("inf"), "Infinity"),
        (9223372036854775807, "9223372036854775807"),
    ],
)
def test_values_are_written_as_java_writes_them(value: Value, text: str | None) -> None:
    assert format_value(value) == text


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_written_doubles_read_back_the_same(value: float) -> None:
    assert parse_value("x", ConfigType.DOUBLE, str(format_value(value))) == value


@pytest.mark.parametrize(
    ("validator", "value", "complaint"),
    [
        (at_least(1), 0, "Value must be at least 1"),
        (at_least(1), 1, None),
        (between(0, 1), 1.5, "Value must be no more than 1"),
        (one_of("a", "b"), "c", "String must be one of: a, b"),
        (list_of("a", "b"), ("a", "c"), "String must be one of: a, b"),
        (list_of(), ("a", ""), "values must not be empty"),
        (list_of(), (), None),
        (list_of(may_be_empty=False), (), "must not be empty; allowed: any non-empty value"),
    ],
)
def test_validators_say_what_is_allowed(validator: Validator, value: Value, complaint: str | None) -> None:
    assert validator(value) == complaint


def test_definition_checks_what_it_parsed() -> None:
    definition = ConfigDefinition("num.things", ConfigType.INT, 1, "How many things.", validator=at_least(1))
    assert definition.parse("3") == 3
    with pytest.raises(ConfigError, match=r"Invalid value 0 for configuration num\.things: Value must be at least 1"):
        definition.parse("0")
    assert ConfigDefinition("a.password", ConfigType.PASSWORD, None, "Secret.").is_sensitive
