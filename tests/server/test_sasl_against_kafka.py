"""Conversations with SASL listeners of Odradek and of Apache Kafka have the same answers."""

from __future__ import annotations

import pytest

from odradek.testing.cluster_network import find_stable_port
from tests.jvm.apache_kafka import ApacheKafka
from tests.server.sasl_broker import PLAIN_LINE, sasl_broker
from tests.server.sasl_transcript import CONVERSATIONS, converse

SCRAM_LINE = "org.apache.kafka.common.security.scram.ScramLoginModule required;"

# Kafka cannot continue after a name that it does not know; Odradek hides which users exist until the last message.
# Kafka answers a second handshake and closes; so does Odradek.
DEPARTURES: set[str] = set()


class SecuredKafka(ApacheKafka):
    """With a SASL_PLAINTEXT listener beside the one that tells that it has started."""

    sasl_port = 0

    def _write_properties(self):  # type: ignore[no-untyped-def]  # as in the base class
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


@pytest.mark.jvm
@pytest.mark.oracle
def test_conversations_have_the_answers_of_apache_kafka() -> None:
    with SecuredKafka() as kafka, sasl_broker() as ours:
        for name, messages in CONVERSATIONS.items():
            theirs = converse(kafka.sasl_port, messages)
            print(name, theirs)
            if name not in DEPARTURES:
                assert converse(ours.sasl_port, messages) == theirs, name
