"""Settings of Kafka's Java clients for librdkafka, which is the judge."""

from __future__ import annotations

import logging

import pytest
from confluent_kafka import KafkaException, Producer

from odradek.conventions.client_properties import JAVA_ONLY, RENAMED, UntranslatableSetting, librdkafka_names

WITHOUT_EFFECT = {"max.poll.records"}  # librdkafka knows it, and uses it in no client of ours
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
SILENT = logging.getLogger("silent")
SILENT.addHandler(logging.NullHandler())
SILENT.propagate = False


def is_known(name: str) -> bool:
    """librdkafka may refuse the value."""
    try:
        Producer({name: "1", "bootstrap.servers": "127.0.0.1:1"}, logger=SILENT)
    except KafkaException as error:
        return "No such configuration property" not in error.args[0].str()
    return True


@pytest.mark.parametrize("name", sorted(JAVA_ONLY - WITHOUT_EFFECT))
def test_librdkafka_refuses_what_is_left_out(name: str) -> None:
    assert not is_known(name)
    assert librdkafka_names({name: "1"}) == {}


@pytest.mark.parametrize("name", sorted(RENAMED))
def test_librdkafka_knows_what_is_renamed(name: str) -> None:
    (translated,) = librdkafka_names({name: "1"})
    assert is_known(translated)


@pytest.mark.parametrize("options", ["username=alice password=secret", "username='alice' password=\"secret\""])
def test_a_login_with_and_without_quotes(options: str) -> None:
    assert librdkafka_names(
        {"sasl.mechanism": "SCRAM-SHA-256", "sasl.jaas.config": f"{SCRAM} required {options};"}
    ) == {
        "sasl.mechanisms": "SCRAM-SHA-256",
        "sasl.username": "alice",
        "sasl.password": "secret",
    }


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (f"{SCRAM} required username=a password=b tokenauth=true;", "delegation tokens"),
        (f"{SCRAM} required username=a;", "username"),
        ("com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true;", "supports"),
        (f"{SCRAM} required username=a password=b", "semicolon"),
    ],
)
def test_a_login_that_librdkafka_does_not_have_is_refused(line: str, problem: str) -> None:
    with pytest.raises(UntranslatableSetting, match=problem):
        librdkafka_names({"sasl.jaas.config": line})
