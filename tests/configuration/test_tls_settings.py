"""The TLS settings of listeners: prefixes, KIP-684, credentials of brokers, listeners that are open to everyone."""

import pytest

from odradek.configuration.broker_configs import BrokerConfig
from odradek.configuration.broker_credentials import broker_credentials
from odradek.configuration.config_types import ConfigError
from odradek.configuration.metrics_listener import is_exposed
from odradek.configuration.tls_settings import tls_settings
from odradek.security.tls.settings import ClientAuth

SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"


def test_property_of_the_listener_wins_over_that_of_all() -> None:
    texts = {
        "ssl.keystore.location": "all.pem",
        "ssl.keystore.password": "hunter2",
        "ssl.client.auth": "required",
        "listener.name.inner.ssl.keystore.location": "inner.pem",
        "listener.name.inner.ssl.enabled.protocols": "TLSv1.3",
    }
    inner = tls_settings(texts, "INNER", has_sasl=False)
    assert inner.key_store.location == "inner.pem"
    assert inner.protocols == ("TLSv1.3",)
    assert inner.client_auth is ClientAuth.REQUIRED
    assert inner.files == ("inner.pem",)
    assert tls_settings(texts, "OUTER", has_sasl=False).key_store.location == "all.pem"
    assert "hunter2" not in repr(inner)


def test_sasl_listener_asks_for_certificates_by_its_own_property_only() -> None:
    texts = {"ssl.client.auth": "required"}
    assert tls_settings(texts, "X", has_sasl=True).client_auth is ClientAuth.NONE
    own = {"listener.name.x.ssl.client.auth": "requested"}
    assert tls_settings({**texts, **own}, "X", has_sasl=True).client_auth is ClientAuth.REQUESTED


def test_empty_algorithm_turns_the_check_of_host_names_off() -> None:
    assert tls_settings({}, "X", has_sasl=False).checks_host_name
    assert not tls_settings({"ssl.endpoint.identification.algorithm": ""}, "X", has_sasl=False).checks_host_name


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("ssl.client.auth", "maybe", "String must be one of: required, requested, none"),
        ("ssl.principal.mapping.rules", "RULE:(/x/", "separated by commas"),
        ("security.inter.broker.protocol", "HTTPS", "must be one of PLAINTEXT, SSL"),
        ("security.inter.broker.protocol", "PLAINTEXT", "must be one of the listeners: SSL"),
    ],
)
def test_invalid_value_is_refused(name: str, value: str, reason: str) -> None:
    for full in {name, f"listener.name.ssl.{name}"} if name.startswith("ssl.") else {name}:
        with pytest.raises(ConfigError) as problem:
            BrokerConfig.from_properties({"listeners": "SSL://127.0.0.1:1", full: value})
        assert reason in str(problem.value)


def test_listener_of_brokers_is_named_by_its_protocol() -> None:
    listeners = "PLAINTEXT://127.0.0.1:1,SSL://127.0.0.1:2"
    chosen = BrokerConfig.from_properties({"listeners": listeners, "security.inter.broker.protocol": "SSL"})
    assert chosen.inter_broker_listener_name == "SSL"
    both = {"listeners": listeners, "security.inter.broker.protocol": "SSL", "inter.broker.listener.name": "SSL"}
    with pytest.raises(ConfigError, match="not both"):
        BrokerConfig.from_properties(both)


def test_brokers_log_in_with_the_line_of_their_listener_and_mechanism() -> None:
    line = f'{SCRAM} required username="%s" password="s3cret";'
    texts = {
        "sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-512",
        "listener.name.brokers.scram-sha-512.sasl.jaas.config": line % "inner",
        "scram-sha-512.sasl.jaas.config": line % "all",
    }
    assert broker_credentials(texts, "BROKERS").user == "inner"
    assert broker_credentials(texts, "OTHER").user == "all"
    with pytest.raises(ConfigError, match=r"set listener\.name\.brokers\.gssapi\.sasl\.jaas\.config"):
        broker_credentials({}, "BROKERS")
    with pytest.raises(ConfigError) as problem:
        broker_credentials({**texts, "sasl.mechanism.inter.broker.protocol": "PLAIN", "sasl.jaas.config": line}, "X")
    assert "s3cret" not in str(problem.value)


def test_listeners_that_accept_anyone_from_elsewhere_are_named() -> None:
    def found(listeners: str, **properties: str) -> list[str]:
        names = {name.replace("_", "."): value for name, value in properties.items()}
        return BrokerConfig.from_properties({"listeners": listeners, **names}).open_listeners()

    assert found("PLAINTEXT://127.0.0.1:1") == []
    assert found("PLAINTEXT://localhost:1") == []
    assert found("PLAINTEXT://[::1]:1") == []
    assert found("PLAINTEXT://:1,SSL://:2") == ["PLAINTEXT", "SSL"]
    assert found("PLAINTEXT://127.0.0.1:1,SSL://kafka-1:2", ssl_client_auth="required") == []
    assert found("SSL://kafka-1:2", ssl_client_auth="requested") == ["SSL"]


@pytest.mark.parametrize(
    ("address", "is_open"),
    [(address, True) for address in (":9644", "0.0.0.0:9644", "[::]:9644", "kafka-1:9644")]
    + [(address, False) for address in ("", "127.0.0.1:9644", "[::1]:9644", "localhost:9644")],
)
def test_metrics_that_other_machines_can_read_are_noticed(address: str, is_open: bool) -> None:
    assert is_exposed(address) == is_open
