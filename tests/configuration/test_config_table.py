"""Tables of settings: the notation, and that every default satisfies its own rule."""

import pytest

from odradek.configuration.broker_config_table import BROKER_CONFIGS
from odradek.configuration.client_metrics_configs import CLIENT_METRICS_CONFIGS
from odradek.configuration.config_table import read_table
from odradek.configuration.config_types import (
    ConfigError,
    ConfigType,
    Synonym,
    UpdateMode,
    format_value,
)
from odradek.configuration.group_configs import GROUP_CONFIGS
from odradek.configuration.topic_config_table import TOPIC_CONFIGS

ALL = [*TOPIC_CONFIGS.values(), *BROKER_CONFIGS.values(), *GROUP_CONFIGS.values(), *CLIENT_METRICS_CONFIGS.values()]


def test_notation() -> None:
    table = read_table(
        """
b.list LIST "" {x,y} cluster < other.list some.hours*3600000
    A list.
a.number INT 5 [2,10] broker
    A number.
c.text STRING - ~{on,off} internal
    A text.
"""
    )
    assert list(table) == ["a.number", "b.list", "c.text"]
    assert table["a.number"].update_mode is UpdateMode.PER_BROKER
    assert table["a.number"].doc == "A number."
    assert table["b.list"].default == ()
    assert table["b.list"].synonyms == (Synonym("other.list"), Synonym("some.hours", 3_600_000))
    assert table["b.list"].parse("y,x") == ("y", "x")
    assert table["c.text"].default is None
    assert table["c.text"].is_internal
    assert table["c.text"].parse("ON") == "ON"
    with pytest.raises(ConfigError, match="no more than 10"):
        table["a.number"].parse("11")
    with pytest.raises(ConfigError, match="case insensitive"):
        table["c.text"].parse("maybe")


def test_defaults_satisfy_their_own_rules() -> None:
    for definition in ALL:
        text = format_value(definition.default)
        if text is not None:
            assert definition.parse(text) == definition.default, definition.name
        assert definition.doc.endswith("."), definition.name


def test_every_synonym_is_a_property_of_the_broker() -> None:
    for definition in (*TOPIC_CONFIGS.values(), *GROUP_CONFIGS.values()):
        for synonym in definition.synonyms:
            other = BROKER_CONFIGS[synonym.name]
            assert other.type in (definition.type, ConfigType.INT)
            if len(definition.synonyms) == 1:
                assert other.default == definition.default
