"""Every setting of a topic has Kafka's name, type, default, source and synonyms, as in expected/topic_settings.json:
what Apache Kafka describes for a topic that was created without settings.
"""

from tests.clients.conftest import APACHE_KAFKA, Target
from tests.clients.recorded import record_settings, recorded_settings
from tests.clients.wire.configs import describe_topic_configs
from tests.clients.wire.connection import Connection
from tests.clients.wire.requests import create_topic, new_topic_name
from tests.clients.wire.waiting import await_topic


def test_settings_of_a_topic_are_kafkas(target: Target, connection: Connection, is_recording: bool) -> None:
    topic = new_topic_name()
    assert create_topic(connection, topic) == "NONE"
    await_topic(connection, topic)
    described = describe_topic_configs(connection, topic)
    recorded = recorded_settings()
    if is_recording and target.name == APACHE_KAFKA:
        record_settings(described)
    assert described.keys() == recorded.keys()
    for name, expected in recorded.items():
        assert described[name] == expected, name
