"""Kafka's properties that mean nothing here."""

import pytest

from odradek.configuration.config_types import ConfigType, UpdateMode
from odradek.configuration.known_properties import KNOWN_PROPERTIES, UnknownPropertyError, base_name, is_known


@pytest.mark.parametrize(
    "name",
    [
        "zookeeper.clientCnxnSocket",
        "broker.id.generation.enable",
        "inter.broker.protocol.version",
        "log.message.format.version",
        "process.roles",
        "controller.quorum.voters",
        "num.io.threads",
        "create.topic.policy.class.name",
        "ssl.keystore.location",
        "sasl.enabled.mechanisms",
        "listener.name.external.scram-sha-512.sasl.jaas.config",
        "reserved.broker.max.id",
    ],
)
def test_names_from_old_and_new_files_are_known(name: str) -> None:
    assert is_known(name)


def test_unknown_names_are_not() -> None:
    assert not is_known("zookeeper.conect")
    assert not is_known("")


def test_types_and_update_modes_are_kept() -> None:
    assert KNOWN_PROPERTIES["log.cleaner.threads"] == (ConfigType.INT, UpdateMode.CLUSTER_WIDE)
    assert KNOWN_PROPERTIES["ssl.protocol"] == (ConfigType.STRING, UpdateMode.PER_BROKER)
    assert KNOWN_PROPERTIES["process.roles"] == (ConfigType.LIST, UpdateMode.READ_ONLY)


def test_listener_prefix_is_taken_off() -> None:
    assert base_name("listener.name.internal.ssl.keystore.type") == "ssl.keystore.type"
    assert base_name("ssl.keystore.type") == "ssl.keystore.type"


def test_error_names_the_property_and_the_nearest_known_one() -> None:
    assert str(UnknownPropertyError("log.dris", ["log.dirs", "node.id"])) == (
        "Unknown property log.dris; did you mean log.dirs?"
    )
    assert str(UnknownPropertyError("qqq", ["log.dirs"])) == "Unknown property qqq"
