"""The authorizer that a broker's settings ask for, and the check that brokers may work with each other under it."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from odradek.configuration.config_types import ConfigError
from odradek.security.acls import decisions
from odradek.security.acls.bindings import EVERYONE, Permission
from odradek.security.authorizer import AllowAll, Operation, ResourceType
from odradek.security.principals import ANONYMOUS

if TYPE_CHECKING:
    from collections.abc import Callable

    from odradek.configuration.broker_configs import BrokerConfig
    from odradek.host.host import Host
    from odradek.metadata.cache import MetadataCache
    from odradek.replica.periodic_tasks import PeriodicTask
    from odradek.security.acls.decisions import AccessRules
    from odradek.security.acls.index import AclIndex
    from odradek.security.acls.stream_permissions import Members
    from odradek.security.audit.log import AuditLog
    from odradek.security.authorizer import Authorizer


def build_authorizer(
    config: BrokerConfig, metadata: MetadataCache, host: Host, add_periodic: Callable[[PeriodicTask], None]
) -> Authorizer:
    """The metadata is loaded: no request is decided without the access control lists of the cluster."""
    rules = access_rules(config)
    if rules is None:
        return AllowAll()
    from odradek.security.acls.authorizer import AclAuthorizer  # noqa: PLC0415 - not every broker has rules

    path = cast("str | None", config.values["groups.file"])
    if not path:
        return AclAuthorizer(lambda: metadata.image, rules)
    from odradek.server.members_file import MembersFile  # noqa: PLC0415 - few brokers have one

    file = MembersFile(path, host)
    authorizer = AclAuthorizer(lambda: metadata.image, rules, file.load())

    def replace_members(members: Members) -> None:
        authorizer.members = members

    file.after_change = replace_members
    add_periodic(file)
    return authorizer


def build_audit_log(config: BrokerConfig, host: Host) -> AuditLog | None:
    path = cast("str | None", config.values["audit.log.path"])
    if not path:
        return None
    from odradek.security.audit.log import AuditLog  # noqa: PLC0415 - few brokers have one

    return AuditLog(
        host,
        path,
        max_bytes=cast("int", config.values["audit.log.max.bytes"]),
        max_files=cast("int", config.values["audit.log.max.files"]),
        lines_per_second=cast("int", config.values["audit.log.max.lines.per.second"]),
    )


def access_rules(config: BrokerConfig) -> AccessRules | None:
    """None without an authorizer."""
    if not config.values["authorizer.class.name"]:
        return None
    text = cast("str | None", config.values["super.users"]) or ""
    super_users = frozenset(name.strip() for name in text.split(";") if name.strip())
    return decisions.AccessRules(super_users, bool(config.values["allow.everyone.if.no.acl.found"]))


def check_access_of_brokers(config: BrokerConfig, acls: AclIndex) -> None:
    """`ConfigError` when the brokers of a cluster would refuse each other's requests. Checked for listeners without
    authentication: only there is the principal of other brokers known in advance."""
    rules = access_rules(config)
    protocol = config.listener_protocols[config.inter_broker_listener_name]
    if rules is None or not config.zookeeper_connect or protocol.has_sasl or protocol.has_tls:
        return
    principal = str(ANONYMOUS)
    if principal in rules.super_users or (rules.allow_without_acls and not acls):
        return
    is_allowed = any(
        binding.permission is Permission.ALLOW and binding.operation in (Operation.CLUSTER_ACTION, Operation.ALL)
        for owner in (principal, EVERYONE)
        for binding in acls.rules_of(ResourceType.CLUSTER, owner)
    )
    if not is_allowed:
        raise ConfigError(
            "super.users",
            config.values["super.users"],
            f"brokers connect to each other as {principal} on the listener {config.inter_broker_listener_name}, and "
            "would refuse each other's requests: add the principal of the brokers to super.users",
        )
