"""Clients of four libraries authenticate, write and read; Kafka's own tools manage users and tokens."""

from __future__ import annotations

import asyncio
import json
import re
import time
import warnings
from functools import cache
from typing import TYPE_CHECKING, Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.abc import AbstractTokenProvider
from confluent_kafka import Consumer, KafkaError, Producer
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # not in __all__
    AdminClient,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from joserfc import jwk, jwt

from tests.jvm.tools import ToolSession
from tests.server.sasl_broker import SaslBroker, sasl_broker

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # kafka-python reads its schemas in a deprecated way
    import kafka

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:kafka", "ignore:read_text is deprecated")

TIMEOUT_S = 60.0
PASSWORD = "carol's secret"
ISSUER = "https://issuer.example"


@cache
def issuer_key() -> Any:
    return jwk.ECKey.generate_key("P-256", {"kid": "one"})


def issued_token(user: str = "rig-7", **claims: Any) -> str:
    now_s = int(time.time())
    content = {"sub": user, "iss": ISSUER, "aud": "kafka", "iat": now_s, "exp": now_s + 600, **claims}
    return jwt.encode({"alg": "ES256", "kid": "one"}, content, issuer_key(), algorithms=["ES256"])


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SaslBroker]:
    keys = tmp_path_factory.mktemp("issuer") / "keys.json"
    keys.write_text(json.dumps({"keys": [issuer_key().as_dict(private=False)]}))
    settings = {
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER",
        "sasl.oauthbearer.jwks.endpoint.url": keys.as_uri(),
        "sasl.oauthbearer.expected.audience": "kafka",
        "sasl.oauthbearer.expected.issuer": ISSUER,
    }
    with sasl_broker(**settings) as running:
        admin = AdminClient({"bootstrap.servers": f"127.0.0.1:{running.plain_port}"})
        for mechanism in (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512):
            upsertion = UserScramCredentialUpsertion("carol", ScramCredentialInfo(mechanism, 4096), PASSWORD.encode())
            for future in admin.alter_user_scram_credentials([upsertion]).values():
                future.result(TIMEOUT_S)
        yield running


CREDENTIALS = [
    ("PLAIN", "alice", "alice secret"),
    ("SCRAM-SHA-256", "carol", PASSWORD),
    ("SCRAM-SHA-512", "carol", PASSWORD),
]


@pytest.mark.parametrize(("mechanism", "user", "password"), CREDENTIALS)
def test_librdkafka_writes_and_reads(secured: SaslBroker, mechanism: str, user: str, password: str) -> None:
    write_and_read_with_librdkafka(secured.client(mechanism, user, password), f"librdkafka-{mechanism}")


def write_and_read_with_librdkafka(settings: dict[str, Any], topic: str) -> None:
    producer = Producer(settings)
    producer.produce(topic, b"value")
    assert producer.flush(TIMEOUT_S) == 0
    consumer = Consumer({**settings, "group.id": topic, "auto.offset.reset": "earliest"})
    try:
        consumer.subscribe([topic])
        record = consumer.poll(TIMEOUT_S)
        assert record is not None
        assert record.value() == b"value"
    finally:
        consumer.close()


@pytest.mark.more
@pytest.mark.parametrize(("mechanism", "user", "password"), CREDENTIALS)
def test_kafka_python_writes_and_reads(secured: SaslBroker, mechanism: str, user: str, password: str) -> None:
    topic = f"kafka-python-{mechanism}"
    settings = {
        "bootstrap_servers": f"127.0.0.1:{secured.sasl_port}",
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": mechanism,
        "sasl_plain_username": user,
        "sasl_plain_password": password,
    }
    producer = kafka.KafkaProducer(**settings)
    producer.send(topic, b"value").get(TIMEOUT_S)
    producer.close()
    consumer = kafka.KafkaConsumer(topic, auto_offset_reset="earliest", consumer_timeout_ms=60_000, **settings)
    try:
        assert next(iter(consumer)).value == b"value"
    finally:
        consumer.close()


@pytest.mark.more
@pytest.mark.parametrize(("mechanism", "user", "password"), CREDENTIALS)
async def test_aiokafka_writes_and_reads(secured: SaslBroker, mechanism: str, user: str, password: str) -> None:
    settings = {"sasl_mechanism": mechanism, "sasl_plain_username": user, "sasl_plain_password": password}
    await write_and_read_with_aiokafka(secured, f"aiokafka-{mechanism}", settings)


async def write_and_read_with_aiokafka(secured: SaslBroker, topic: str, sasl: dict[str, Any]) -> None:
    address = {"bootstrap_servers": f"127.0.0.1:{secured.sasl_port}", "security_protocol": "SASL_PLAINTEXT"}
    async with AIOKafkaProducer(**address, **sasl) as producer:
        await producer.send_and_wait(topic, b"value")
    async with AIOKafkaConsumer(topic, auto_offset_reset="earliest", **address, **sasl) as consumer:
        record = await asyncio.wait_for(consumer.getone(), TIMEOUT_S)
    assert record.value == b"value"


class IssuedTokens(AbstractTokenProvider):  # type: ignore[misc]  # aiokafka has no types
    async def token(self) -> str:
        return issued_token()


async def test_bearer_tokens_authenticate(secured: SaslBroker) -> None:
    await write_and_read_with_aiokafka(
        secured, "bearer", {"sasl_mechanism": "OAUTHBEARER", "sasl_oauth_token_provider": IssuedTokens()}
    )
    settings = {**secured.client("OAUTHBEARER", "", ""), "oauth_cb": lambda _: (issued_token(), time.time() + 600)}
    settings = {name: value for name, value in settings.items() if name not in ("sasl.username", "sasl.password")}
    write_and_read_with_librdkafka(settings, "bearer-librdkafka")


@pytest.mark.parametrize("claims", [{"aud": "another"}, {"iss": "https://another"}, {"exp": 1000}])
def test_bearer_tokens_of_others_are_refused(secured: SaslBroker, claims: dict[str, Any]) -> None:
    settings = secured.client("OAUTHBEARER", "", "")
    assert_refused({**settings, "oauth_cb": lambda _: (issued_token(**claims), time.time() + 600)}, "invalid_token")


@pytest.mark.parametrize(
    ("mechanism", "user", "text"),
    [
        ("PLAIN", "alice", "Authentication failed: Invalid username or password"),
        ("PLAIN", "nobody", "Authentication failed: Invalid username or password"),
        ("SCRAM-SHA-256", "carol", "due to invalid credentials with SASL mechanism SCRAM-SHA-256"),
        ("SCRAM-SHA-256", "nobody", "due to invalid credentials with SASL mechanism SCRAM-SHA-256"),
    ],
)
def test_wrong_passwords_are_refused(secured: SaslBroker, mechanism: str, user: str, text: str) -> None:
    assert_refused(secured.client(mechanism, user, "wrong"), text)


def assert_refused(settings: dict[str, Any], text: str) -> None:
    reported: list[KafkaError] = []
    settings = {name: value for name, value in settings.items() if value != ""}
    producer = Producer({**settings, "error_cb": reported.append, "log_level": 0})
    deadline = time.monotonic() + TIMEOUT_S
    while not any(error.code() == KafkaError._AUTHENTICATION for error in reported):
        assert time.monotonic() < deadline
        producer.poll(0.1)
    assert any(text in error.str() for error in reported)


@pytest.fixture(scope="module")
def tools(jvm: None) -> Iterator[ToolSession]:
    with ToolSession() as session:
        yield session


def java_client(path: Path, module: str, mechanism: str, options: str) -> Path:
    path.write_text(
        "security.protocol=SASL_PLAINTEXT\n"
        f"sasl.mechanism={mechanism}\n"
        f"sasl.jaas.config=org.apache.kafka.common.security.{module} required {options};\n"
    )
    return path


@pytest.mark.more
def test_tools_of_kafka_manage_users_and_tokens(secured: SaslBroker, tools: ToolSession, tmp_path: Path) -> None:
    plain = java_client(
        tmp_path / "plain", "plain.PlainLoginModule", "PLAIN", 'username="alice" password="alice secret"'
    )
    server = ("--bootstrap-server", f"127.0.0.1:{secured.sasl_port}")
    users = (*server, "--command-config", str(plain), "--entity-type", "users", "--entity-name", "erin")
    for config in ("SCRAM-SHA-256=[iterations=8192,password=java secret]", "SCRAM-SHA-512=[password=java secret]"):
        tools.run("kafka-configs", *users, "--alter", "--add-config", config).checked()
    described = tools.run("kafka-configs", *users, "--describe").checked()
    assert "SCRAM-SHA-256=iterations=8192" in described
    assert "SCRAM-SHA-512=iterations=4096" in described

    scram = java_client(
        tmp_path / "scram", "scram.ScramLoginModule", "SCRAM-SHA-512", 'username="erin" password="java secret"'
    )
    write_and_read_with_java(tools, server, scram, "java-scram")

    created = tools.run(
        "kafka-delegation-tokens", *server, "--command-config", str(scram), "--create", "--max-life-time-period", "-1"
    ).checked()  # fmt: skip
    row = created.strip().splitlines()[-1].split()
    token_id, hmac = row[0], row[1]
    assert "User:erin" in row
    options = f'username="{token_id}" password="{hmac}" tokenauth="true"'
    bearer = java_client(tmp_path / "token", "scram.ScramLoginModule", "SCRAM-SHA-256", options)
    write_and_read_with_java(tools, server, bearer, "java-token")

    manage = ("kafka-delegation-tokens", *server, "--command-config", str(scram))
    tools.run(*manage, "--renew", "--renew-time-period", "-1", "--hmac", hmac).checked()
    assert token_id in tools.run(*manage, "--describe", "--owner-principal", "User:erin").checked()
    refused = tools.run("kafka-delegation-tokens", *server, "--command-config", str(bearer), "--describe")
    assert re.search("Delegation Token requests are not allowed", refused.output + refused.errors)
    tools.run(*manage, "--expire", "--expiry-time-period", "-1", "--hmac", hmac).checked()
    assert token_id not in tools.run(*manage, "--describe", "--owner-principal", "User:erin").checked()

    tools.run("kafka-configs", *users, "--alter", "--delete-config", "SCRAM-SHA-256").checked()
    assert "SCRAM-SHA-256" not in tools.run("kafka-configs", *users, "--describe").checked()


def write_and_read_with_java(tools: ToolSession, server: tuple[str, ...], client: Path, topic: str) -> None:
    tools.run(
        "kafka-console-producer", *server, "--topic", topic, "--command-config", str(client), standard_input="value\n"
    ).checked()  # fmt: skip
    read = tools.run(
        "kafka-console-consumer", *server, "--topic", topic, "--from-beginning", "--max-messages", "1",
        "--command-config", str(client), "--timeout-ms", "60000",
        timeout_seconds=90,
    ).checked()  # fmt: skip
    assert read == "value\n"
