"""Conversations with SASL listeners of Odradek and of Apache Kafka have the same answers."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from odradek.local.ports import find_stable_port
from tests.jvm.apache_kafka import ApacheKafka
from tests.server.sasl_broker import PLAIN_LINE, SaslBroker, sasl_broker
from tests.server.sasl_transcript import CONVERSATIONS, converse

SCRAM_LINE = "org.apache.kafka.common.security.scram.ScramLoginModule required;"


class SecuredKafka(ApacheKafka):
    """With a SASL_PLAINTEXT listener beside the one that tells that it has started."""

    sasl_port = 0

    def _write_properties(self) -> Path:
        self.sasl_port = self.sasl_port or find_stable_port()
        self._properties |= {
            "listeners": f"PLAINTEXT://127.0.0.1:{self.port},SASL_PLAINTEXT://127.0.0.1:{self.sasl_port},"
            f"CONTROLLER://127.0.0.1:{self._controller_port}",
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT",
            "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
            "listener.name.sasl_plaintext.plain.sasl.jaas.config": PLAIN_LINE,
            "listener.name.sasl_plaintext.scram-sha-256.sasl.jaas.config": SCRAM_LINE,
            "listener.name.sasl_plaintext.scram-sha-512.sasl.jaas.config": SCRAM_LINE,
        }
        return super()._write_properties()


@pytest.fixture(scope="module")
def ours() -> Iterator[SaslBroker]:
    with sasl_broker() as running:
        yield running


@pytest.fixture(scope="module")
def theirs() -> Iterator[SecuredKafka]:
    with SecuredKafka() as kafka:
        yield kafka


@pytest.mark.parametrize("name", CONVERSATIONS)
def test_conversations_have_the_recorded_answers(ours: SaslBroker, name: str) -> None:
    messages, answers = CONVERSATIONS[name]
    assert converse(ours.sasl_port, messages) == answers


@pytest.mark.jvm
@pytest.mark.oracle
@pytest.mark.parametrize("name", CONVERSATIONS)
def test_apache_kafka_gives_the_recorded_answers(theirs: SecuredKafka, name: str) -> None:
    messages, answers = CONVERSATIONS[name]
    assert converse(theirs.sasl_port, messages) == answers
