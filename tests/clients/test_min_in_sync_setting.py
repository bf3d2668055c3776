"""While eligible leader replicas are kept (KIP-966), `min.insync.replicas` is a setting of the cluster.

The controller and all leaders count with the same.
"""

from tests.clients.conftest import APACHE_KAFKA, Target
from tests.clients.wire.configs import BROKER_RESOURCE, alter_config, describe_configs
from tests.clients.wire.connection import Connection

NAME = "min.insync.replicas"
DEFAULTS = (BROKER_RESOURCE, "")
DYNAMIC = [NAME, "1", "DYNAMIC_DEFAULT_BROKER_CONFIG"]


def own(target: Target) -> tuple[int, str]:
    return BROKER_RESOURCE, "1" if target.name == APACHE_KAFKA else "0"


def test_it_is_described_as_a_setting_of_all_brokers(target: Target, connection: Connection) -> None:
    described = [describe_configs(connection, *each)[NAME] for each in (DEFAULTS, own(target))]
    assert [each["source"] for each in described] == ["DYNAMIC_DEFAULT_BROKER_CONFIG"] * 2
    assert [each["synonyms"] for each in described] == [[DYNAMIC], [DYNAMIC, [NAME, "1", "DEFAULT_CONFIG"]]]
    assert not any(each["read_only"] for each in described)


def test_no_broker_has_another_one(target: Target, connection: Connection) -> None:
    refused = ("INVALID_CONFIG", "Broker-level min.insync.replicas cannot be altered while ELR is enabled.")
    assert [alter_config(connection, own(target), NAME, value) for value in ("2", None)] == [refused] * 2


def test_it_is_set_but_not_deleted(connection: Connection) -> None:
    assert alter_config(connection, DEFAULTS, NAME, "1") == ("NONE", "")
    refused = ("INVALID_CONFIG", "Cluster-level min.insync.replicas cannot be removed while ELR is enabled.")
    assert alter_config(connection, DEFAULTS, NAME, None) == refused
