"""Every setting of a topic has Kafka's name, type, default, source and synonyms: expected/topic_settings.json, as told
by Apache Kafka for a topic that was created without settings.
"""

import json
from pathlib import Path

from tests.clients.accepted_differences import TOPIC_SETTINGS, accepted_answers
from tests.clients.conftest import Target
from tests.clients.wire.configs import describe_topic_configs
from tests.clients.wire.connection import Connection
from tests.clients.wire.requests import create_topic, new_topic_name
from tests.clients.wire.waiting import await_topic

EXPECTED = json.loads((Path(__file__).parent / "expected" / "topic_settings.json").read_text())


def test_settings_of_a_topic_are_kafkas(target: Target, connection: Connection) -> None:
    topic = new_topic_name()
    assert create_topic(connection, topic) == "NONE"
    await_topic(connection, topic)
    told = describe_topic_configs(connection, topic)
    assert told.keys() == EXPECTED.keys()
    for name, expected in EXPECTED.items():
        assert told[name] in (expected, *accepted_answers(target.name, name, TOPIC_SETTINGS)), name
