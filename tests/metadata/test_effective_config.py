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
    assert effective_config(static, image).message_max_bytes == 100
    image = image.apply(ConfigsChanged(BROKER, "", {"message.max.bytes": "200"}))
    assert effective_config(static, image).message_max_bytes == 200
    image = image.apply(ConfigsChanged(BROKER, "4", {"message.max.bytes": "400"}))
    assert effective_config(static, image).message_max_bytes == 200
    image = image.apply(ConfigsChanged(BROKER, "3", {"message.max.bytes": "300"}))
    assert effective_config(static, image).message_max_bytes == 300
