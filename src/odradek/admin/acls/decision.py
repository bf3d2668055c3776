"""The decision of the brokers about an operation, made here from their rules by the same code."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from odradek.admin.acls.requests import find
from odradek.admin.acls.rules import describe
from odradek.admin.errors import NotAuthorized
from odradek.admin.settings import Kind as SettingKind
from odradek.admin.settings import read_settings
from odradek.security.acls.bindings import WILDCARD, AclFilter, PatternType
from odradek.security.acls.decisions import AccessRules, Actor, Decision, Reason, decide
from odradek.security.acls.index import AclDraft, AclIndex

if TYPE_CHECKING:
    from odradek.admin.cluster import Cluster
    from odradek.security.authorizer import Operation
    from odradek.security.authorizer import ResourceType as Kind

SETTINGS = ("super.users", "allow.everyone.if.no.acl.found")
UNKNOWN_SETTINGS = "super.users and allow.everyone.if.no.acl.found of the brokers are not known"


class CheckedAccess(NamedTuple):
    """`knows_settings` is false if the brokers do not show the settings that decide together with the rules."""

    decision: Decision
    knows_settings: bool


def check_access(
    cluster: Cluster, principal: str, operation: Operation, kind: Kind, name: str, host: str = WILDCARD
) -> CheckedAccess:
    draft = AclDraft(AclIndex())
    for rule in find(cluster, [AclFilter(kind, name, PatternType.MATCH)]):
        draft.add(rule)
    settings = read_access_settings(cluster)
    decision = decide(draft.finish(), settings or AccessRules(), Actor(principal, host), operation, kind, name)
    return CheckedAccess(decision, settings is not None)


def read_access_settings(cluster: Cluster) -> AccessRules | None:
    """The settings of one broker; None if it does not show them: Apache Kafka does not, nor does a broker to a user
    without DescribeConfigs on the cluster."""
    brokers, _metadata = cluster.requests.metadata([])
    try:
        found = read_settings(cluster, SettingKind.BROKER, str(next(iter(brokers))))
    except NotAuthorized:
        return None
    values = {each.name: each.value for each in found if each.name in SETTINGS}
    if SETTINGS[0] not in values:
        return None
    names = (values.get(SETTINGS[0]) or "").split(";")
    return AccessRules(frozenset(name.strip() for name in names if name.strip()), values.get(SETTINGS[1]) == "true")


def explanation(decision: Decision) -> str:
    """The rule or the setting that decides."""
    if decision.binding is not None:
        return f"rule: {describe(decision.binding)}"
    if decision.reason is Reason.RESOURCE_WITHOUT_ACLS:
        setting = "true" if decision.is_allowed else "false"
        return f"{decision.reason.value}, and {SETTINGS[1]} is {setting}"
    return str(decision.reason.value)
