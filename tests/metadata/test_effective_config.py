"""The configuration of a broker with the dynamic settings of an image."""

from odradek.configuration.broker_configs import BrokerConfig
from odradek.configuration.config_types import ConfigResourceType
from odradek.metadata.changes import ConfigsChanged
from odradek.metadata.effective_config import effective_config
from odradek.metadata.snapshot import empty_image

BROKER = ConfigResourceType.BROKER


def test_own_settings_win_over_those_of_all_brokers_and_the_file() -> None:
    static = BrokerConfig.from_properties({"node.id": "3", "message.max.bytes": "100"})
    image = empty_image("c")
    assert effective_config(static, image).config.values["message.max.bytes"] == 100
    image = image.apply(ConfigsChanged(BROKER, "", {"message.max.bytes": "200"}))
    assert effective_config(static, image).config.values["message.max.bytes"] == 200
    image = image.apply(ConfigsChanged(BROKER, "4", {"message.max.bytes": "400"}))
    assert effective_config(static, image).config.values["message.max.bytes"] == 200
    image = image.apply(ConfigsChanged(BROKER, "3", {"message.max.bytes": "300"}))
    assert effective_config(static, image).config.values["message.max.bytes"] == 300


def test_a_setting_that_this_broker_cannot_use_is_left_out_and_the_others_apply() -> None:
    """The lag is compared with another setting, which only this broker's file has."""
    static = BrokerConfig.from_properties({"node.id": "3", "log.cleaner.max.compaction.lag.ms": "1000"})
    image = empty_image("c").apply(
        ConfigsChanged(BROKER, "3", {"log.cleaner.min.compaction.lag.ms": "2000", "message.max.bytes": "300"})
    )
    config, unusable = effective_config(static, image)
    assert config.values["message.max.bytes"] == 300
    assert config.topic_defaults["min.compaction.lag.ms"] == 0
    assert list(unusable) == ["log.cleaner.min.compaction.lag.ms"]


def test_the_value_that_was_used_last_stays() -> None:
    static = BrokerConfig.from_properties({"node.id": "3", "log.cleaner.max.compaction.lag.ms": "1000"})
    image = empty_image("c").apply(ConfigsChanged(BROKER, "3", {"log.cleaner.min.compaction.lag.ms": "500"}))
    last = effective_config(static, image).config
    image = image.apply(ConfigsChanged(BROKER, "3", {"log.cleaner.min.compaction.lag.ms": "2000"}))
    config, _ = effective_config(static, image, last)
    assert config.topic_defaults["min.compaction.lag.ms"] == 500
    again, _ = effective_config(static, image, config)
    assert again.topic_defaults["min.compaction.lag.ms"] == 500


def test_an_error_that_names_a_setting_of_the_file_leaves_out_the_setting_at_fault() -> None:
    static = BrokerConfig.from_properties({"node.id": "3", "log.cleaner.min.compaction.lag.ms": "1000"})
    image = empty_image("c").apply(
        ConfigsChanged(BROKER, "3", {"log.cleaner.max.compaction.lag.ms": "10", "message.max.bytes": "300"})
    )
    config, unusable = effective_config(static, image)
    assert config.values["message.max.bytes"] == 300
    assert list(unusable) == ["log.cleaner.max.compaction.lag.ms"]
