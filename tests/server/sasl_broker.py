"""A broker with a SASL_PLAINTEXT listener and a PLAINTEXT one, for tests of authentication."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from odradek.testing import RunningBroker, broker

ALICE = {"sasl.username": "alice", "sasl.password": "alice secret"}
PLAIN_LINE = (
    "org.apache.kafka.common.security.plain.PlainLoginModule required "
    'user_alice="alice secret" user_bob="bob secret" user_b="b";'
)
PROPERTIES = {
    "listeners": "SASL_PLAINTEXT://127.0.0.1:0,PLAINTEXT://127.0.0.1:0",
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
    "listener.name.sasl_plaintext.plain.sasl.jaas.config": PLAIN_LINE,
    "delegation.token.secret.key": "key of the tokens",
    "connection.failed.authentication.delay.ms": "10",
}


class SaslBroker(NamedTuple):
    process: RunningBroker
    sasl_port: int
    plain_port: int

    def client(self, mechanism: str, user: str, password: str) -> dict[str, str]:
        """Settings of librdkafka."""
        return {
            "bootstrap.servers": f"127.0.0.1:{self.sasl_port}",
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": mechanism,
            "sasl.username": user,
            "sasl.password": password,
        }


@contextmanager
def sasl_broker(**properties: str) -> Iterator[SaslBroker]:
    with broker({**PROPERTIES, **{name.replace("__", "."): value for name, value in properties.items()}}) as process:
        yield SaslBroker(process, *process.ports.values())
