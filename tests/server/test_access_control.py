"""Which authorizer the settings ask for, and brokers that would refuse each other."""

import pytest

from odradek.configuration.broker_configs import BrokerConfig
from odradek.configuration.config_types import ConfigError
from odradek.security.acls.bindings import AclBinding, PatternType, Permission
from odradek.security.acls.decisions import AccessRules
from odradek.security.acls.index import AclDraft, AclIndex
from odradek.security.authorizer import CLUSTER_NAME, Operation, ResourceType
from odradek.server.access_control import access_rules, check_access_of_brokers

AUTHORIZER = {"authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer"}
CLUSTER = {**AUTHORIZER, "zookeeper.connect": "127.0.0.1:2181"}


def config(**properties: str) -> BrokerConfig:
    return BrokerConfig.from_properties({name.replace("_", "."): value for name, value in properties.items()})


def indexed(permission: Permission, operation: Operation) -> AclIndex:
    draft = AclDraft(AclIndex())
    draft.add(
        AclBinding(
            ResourceType.CLUSTER, CLUSTER_NAME, PatternType.LITERAL, "User:ANONYMOUS", "*", operation, permission
        )
    )
    return draft.finish()


def test_without_an_authorizer_there_are_no_rules() -> None:
    assert access_rules(config()) is None


@pytest.mark.parametrize("name", ["kafka.security.authorizer.AclAuthorizer", AUTHORIZER["authorizer.class.name"]])
def test_settings_of_kafka_turn_it_on(name: str) -> None:
    rules = access_rules(
        config(
            authorizer_class_name=name,
            super_users=" User:admin; User:CN=kafka,O=example ;",
            allow_everyone_if_no_acl_found="true",
        )
    )
    assert rules == AccessRules(frozenset({"User:admin", "User:CN=kafka,O=example"}), allow_without_acls=True)


@pytest.mark.parametrize(
    "properties", [{"authorizer.class.name": "com.example.Mine"}, {**AUTHORIZER, "super.users": "admin"}]
)
def test_settings_that_cannot_be_followed_are_refused(properties: dict[str, str]) -> None:
    with pytest.raises(ConfigError):
        BrokerConfig.from_properties(properties)


def test_brokers_that_would_refuse_each_other_do_not_start() -> None:
    with pytest.raises(ConfigError, match=r"User:ANONYMOUS on the listener PLAINTEXT.*add the principal"):
        check_access_of_brokers(BrokerConfig.from_properties(CLUSTER), AclIndex())
    denied = indexed(Permission.DENY, Operation.CLUSTER_ACTION)
    with pytest.raises(ConfigError):
        check_access_of_brokers(BrokerConfig.from_properties(CLUSTER), denied)


def test_brokers_with_rights_or_without_a_cluster_start() -> None:
    named = BrokerConfig.from_properties({**CLUSTER, "super.users": "User:ANONYMOUS"})
    check_access_of_brokers(named, AclIndex())
    check_access_of_brokers(BrokerConfig.from_properties(AUTHORIZER), AclIndex())
    check_access_of_brokers(BrokerConfig.from_properties(CLUSTER), indexed(Permission.ALLOW, Operation.CLUSTER_ACTION))
    everyone = BrokerConfig.from_properties({**CLUSTER, "allow.everyone.if.no.acl.found": "true"})
    check_access_of_brokers(everyone, AclIndex())
