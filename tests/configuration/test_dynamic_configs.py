"""Which of a broker's settings can change while it runs."""

import pytest

from odradek.configuration.broker_configs import BrokerConfig
from odradek.configuration.config_types import ConfigType, UpdateMode
from odradek.configuration.dynamic_configs import (
    check_dynamic_configs,
    config_type,
    update_mode,
    usable_dynamic_configs,
)
from odradek.protocol.errors import ErrorCode
from odradek.protocol.refusal import Refusal

CONFIG = BrokerConfig.from_properties({})


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"message.max.bytes": "110000"},
        {"log.retention.ms": "2", "log.retention.bytes": "20"},
        {"log.cleaner.threads": "2"},
        {"invalid": "2"},
        {"leader.replication.throttled.rate": "1000"},
    ],
)
@pytest.mark.parametrize("is_default", [True, False])
def test_cluster_wide_and_unknown_settings_can_change(values: dict[str, str], is_default: bool) -> None:
    assert check_dynamic_configs(CONFIG, values, is_default=is_default) is None


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (
            {"security.inter.broker.protocol": "PLAINTEXT", "auto.create.topics.enable": "false"},
            "Cannot update these configs dynamically: [auto.create.topics.enable, security.inter.broker.protocol]",
        ),
        ({"listeners": "PLAINTEXT://:1"}, "Cannot update these configs dynamically: [listeners]"),
        (
            {"ssl.truststore.type": "PKCS12"},
            (
                "These security configs can be dynamically updated only per-listener using the listener prefix: "
                "[ssl.truststore.type]"
            ),
        ),
        (
            {"message.max.bytes": "big"},
            "Invalid value big for configuration message.max.bytes: Not a number of type INT",
        ),
        (
            {"log.cleaner.threads": "two"},
            "Invalid value two for configuration log.cleaner.threads: Not a number of type INT",
        ),
        ({"log.roll.ms": "0"}, "Invalid value 0 for configuration log.roll.ms: must be greater than or equal to 1"),
    ],
)
@pytest.mark.parametrize("is_default", [True, False])
def test_refusals(values: dict[str, str], message: str, is_default: bool) -> None:
    assert check_dynamic_configs(CONFIG, values, is_default=is_default) == Refusal(ErrorCode.INVALID_REQUEST, message)


def test_per_broker_settings_need_a_broker() -> None:
    keystore = {"listener.name.internal.ssl.keystore.location": "/tmp/test.jks"}
    assert check_dynamic_configs(CONFIG, keystore, is_default=False) is None
    assert check_dynamic_configs(CONFIG, keystore, is_default=True) == Refusal(
        ErrorCode.INVALID_REQUEST,
        "Cannot update these configs at default cluster level, broker id must be specified: "
        "[listener.name.internal.ssl.keystore.location]",
    )
    assert check_dynamic_configs(CONFIG, {"listener.name.a.max.connections": "9"}, is_default=True) is None


def test_stored_settings_that_no_longer_make_sense_are_left_out() -> None:
    stored = {"message.max.bytes": "big", "node.id": "7", "log.roll.ms": "9", "cordoned.log.dirs": "/a"}
    assert usable_dynamic_configs(stored, is_default=True) == {"log.roll.ms": "9"}
    assert usable_dynamic_configs(stored, is_default=False) == {"log.roll.ms": "9", "cordoned.log.dirs": "/a"}


@pytest.mark.parametrize(
    "name",
    [
        "sasl.oauthbearer.allowed.urls",
        "listener.name.ext.sasl.oauthbearer.allowed.urls",
        "listener.name.ext.oauthbearer.sasl.oauthbearer.jwks.endpoint.url",
    ],
)
def test_the_issuer_of_tokens_cannot_be_changed_over_the_wire(name: str) -> None:
    assert update_mode(name) is UpdateMode.READ_ONLY


def test_secrets_of_earlier_versions_are_passwords() -> None:
    for name in ("password.encoder.secret", "delegation.token.master.key", "zookeeper.ssl.truststore.password"):
        assert config_type(name) is ConfigType.PASSWORD
