"""SASL settings of listeners: precedence, errors that say what to do, and secrets that are not shown."""

import pytest

from odradek.configuration.broker_configs import BrokerConfig
from odradek.configuration.config_descriptions import describe_broker_configs
from odradek.configuration.config_types import ConfigError
from odradek.conventions.client_properties import OAUTHBEARER_MODULE, PLAIN_MODULE, SCRAM_MODULE

PLAIN_LINE = f'{PLAIN_MODULE} required username="a" password="b" user_alice="secret";'
SASL = {
    "listeners": "CLIENTS://127.0.0.1:9092,PLAINTEXT://127.0.0.1:9093",
    "listener.security.protocol.map": "CLIENTS:SASL_PLAINTEXT,PLAINTEXT:PLAINTEXT",
}


def with_properties(more: dict[str, str]) -> BrokerConfig:
    return BrokerConfig.from_properties({**SASL, **more})


def test_only_listeners_with_sasl_have_settings() -> None:
    built = with_properties(
        {"sasl.enabled.mechanisms": "SCRAM-SHA-256,SCRAM-SHA-512", "connections.max.reauth.ms": "7"}
    )
    listener = built.sasl_listeners["CLIENTS"]
    assert list(built.sasl_listeners) == ["CLIENTS"]
    assert listener.mechanisms == ("SCRAM-SHA-256", "SCRAM-SHA-512")
    assert listener.longest_session_ms == {"SCRAM-SHA-256": 7, "SCRAM-SHA-512": 7}


def test_the_most_specific_property_counts() -> None:
    built = with_properties(
        {
            "sasl.enabled.mechanisms": "SCRAM-SHA-256",
            "listener.name.clients.sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512",
            "listener.name.clients.plain.sasl.jaas.config": PLAIN_LINE,
            "listener.name.clients.sasl.jaas.config": f"{SCRAM_MODULE} required;",
            "listener.name.clients.plain.connections.max.reauth.ms": "5",
            "connections.max.reauth.ms": "9",
        }
    )
    listener = built.sasl_listeners["CLIENTS"]
    assert listener.mechanisms == ("PLAIN", "SCRAM-SHA-512")
    assert listener.passwords == {"alice": "secret"}
    assert listener.longest_session_ms == {"PLAIN": 5, "SCRAM-SHA-512": 9}
    assert {name: module.name for name, module in listener.login_modules.items()} == {
        "PLAIN": PLAIN_MODULE,
        "SCRAM-SHA-512": SCRAM_MODULE,
    }
    assert not built.ignored_properties


@pytest.mark.parametrize(
    ("properties", "reason"),
    [
        ({}, "choose one or more of PLAIN"),
        ({"sasl.enabled.mechanisms": "GSSAPI"}, "choose one or more of PLAIN"),
        ({"sasl.enabled.mechanisms": ""}, "choose one or more of PLAIN"),
        ({"sasl.enabled.mechanisms": "PLAIN"}, "PLAIN needs users"),
        ({"sasl.enabled.mechanisms": "PLAIN", "sasl.jaas.config": f"{PLAIN_MODULE} required;"}, "PLAIN needs users"),
        ({"sasl.enabled.mechanisms": "PLAIN", "sasl.jaas.config": f'{PLAIN_MODULE} required user_a="";'}, "empty"),
        ({"sasl.enabled.mechanisms": "PLAIN", "sasl.jaas.config": PLAIN_LINE[:-1]}, "semicolon"),
        (
            {
                "sasl.enabled.mechanisms": "SCRAM-SHA-256",
                "listener.name.clients.scram-sha-256.sasl.jaas.config": PLAIN_LINE,
            },
            "must be org.apache.kafka.common.security.scram.ScramLoginModule",
        ),
        ({"sasl.enabled.mechanisms": "OAUTHBEARER"}, "keys of the issuer"),
        (
            {"sasl.enabled.mechanisms": "OAUTHBEARER", "sasl.oauthbearer.jwks.endpoint.url": "https://a/keys"},
            "sasl.oauthbearer.allowed.urls",
        ),
        (
            {"sasl.enabled.mechanisms": "OAUTHBEARER", "sasl.oauthbearer.jwks.endpoint.url": "ftp://a/keys"},
            "expected file:///path",
        ),
    ],
)
def test_errors_say_what_to_do_and_show_no_secret(properties: dict[str, str], reason: str) -> None:
    with pytest.raises(ConfigError, match=reason) as caught:
        with_properties(properties)
    assert "secret" not in str(caught.value)


def test_oauth_settings() -> None:
    built = with_properties(
        {
            "sasl.enabled.mechanisms": "OAUTHBEARER",
            "sasl.oauthbearer.jwks.endpoint.url": "https://a/keys",
            "sasl.oauthbearer.allowed.urls": "https://a/token,https://a/keys",
            "sasl.oauthbearer.expected.audience": "kafka,other",
            "listener.name.clients.oauthbearer.sasl.oauthbearer.expected.issuer": "https://a",
            "listener.name.clients.oauthbearer.sasl.jaas.config": f"{OAUTHBEARER_MODULE} required;",
        }
    )
    oauth = built.sasl_listeners["CLIENTS"].oauth
    assert oauth is not None
    assert (oauth.jwks_url, oauth.audiences, oauth.issuer) == ("https://a/keys", ("kafka", "other"), "https://a")
    assert (oauth.clock_skew_s, oauth.scope_claim, oauth.subject_claim) == (30, "scope", "sub")


def test_secrets_are_neither_described_nor_part_of_a_text() -> None:
    built = with_properties(
        {
            "sasl.enabled.mechanisms": "PLAIN",
            "listener.name.clients.plain.sasl.jaas.config": PLAIN_LINE,
            "sasl.jaas.config": PLAIN_LINE,
            "delegation.token.secret.key": "secret",
        }
    )
    assert "secret" not in repr(built.sasl_listeners)
    entries = {entry.name: entry for entry in describe_broker_configs(built)}
    for name in ("listener.name.clients.plain.sasl.jaas.config", "sasl.jaas.config", "delegation.token.secret.key"):
        assert entries[name].is_sensitive
        assert entries[name].value is None
        assert all(synonym.value is None for synonym in entries[name].synonyms)


def test_mechanisms_change_at_run_time() -> None:
    built = with_properties({"sasl.enabled.mechanisms": "SCRAM-SHA-256"})
    changed = built.with_dynamic({}, {"listener.name.clients.sasl.enabled.mechanisms": "SCRAM-SHA-512"})
    assert changed.sasl_listeners["CLIENTS"].mechanisms == ("SCRAM-SHA-512",)
