"""Rules on access: the authorizer, super users, rules for everybody, what clients without credentials may do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.admin.doctor.finding import Finding, Severity, problem, warning
from odradek.conventions.figures import count_text
from odradek.security.acls.bindings import Permission
from odradek.security.authorizer import Operation

if TYPE_CHECKING:
    from collections.abc import Iterator

    from odradek.admin.doctor.security.facts import AnonymousRights, SecurityFacts
    from odradek.security.acls.bindings import AclBinding

AUTHORIZER = "authorizer.class.name"
EVERYBODY = frozenset({"User:*", "User:ANONYMOUS"})
MOST_SUPER_USERS = 5
READS = frozenset({Operation.READ, Operation.DESCRIBE, Operation.DESCRIBE_CONFIGS})
HARMLESS = frozenset({"DESCRIBE", "DESCRIBE_CONFIGS"})


def no_authorizer(facts: SecurityFacts) -> Iterator[Finding]:
    assert facts.brokers is not None
    found = [broker_id for broker_id, settings in facts.brokers.items() if not settings.get(AUTHORIZER)]
    if found:
        is_exposed = any(each.is_exposed for each in facts.listeners or ())
        yield Finding(
            Severity.PROBLEM if is_exposed else Severity.WARNING,
            "brokers have no authorizer: every client may do everything",
            tuple(f"broker {broker_id}" for broker_id in found),
            f"Set {AUTHORIZER}=org.apache.kafka.metadata.authorizer.StandardAuthorizer and super.users, then: "
            "odradek acl add --allow-principal User:NAME --producer --topic TOPIC",
        )


def allow_everyone(facts: SecurityFacts) -> Iterator[Finding]:
    assert facts.brokers is not None
    found = [
        broker_id
        for broker_id, settings in facts.brokers.items()
        if settings.get(AUTHORIZER) and settings.get("allow.everyone.if.no.acl.found") == "true"
    ]
    if found:
        yield problem(
            "everyone may access whatever no rule names (allow.everyone.if.no.acl.found)",
            [f"broker {broker_id}" for broker_id in found],
            "Add rules for those who need them, then set allow.everyone.if.no.acl.found=false",
        )


def super_users(facts: SecurityFacts) -> Iterator[Finding]:
    assert facts.brokers is not None
    broad: dict[str, list[str]] = {}
    many: dict[str, int] = {}
    for broker_id, settings in facts.brokers.items():
        names = [each.strip() for each in settings.get("super.users", "").split(";") if each.strip()]
        if everybody := sorted(EVERYBODY & set(names)):
            broad[f"broker {broker_id}"] = everybody
        if len(names) > MOST_SUPER_USERS:
            many[f"broker {broker_id}"] = len(names)
    if broad:
        yield problem(
            "super.users has principals that anybody can be",
            [f"{place}: {', '.join(names)}" for place, names in broad.items()],
            "Name the principals of brokers and administrators only in super.users",
        )
    if many:
        yield warning(
            f"there are more than {MOST_SUPER_USERS} super users, which no rule restricts",
            [f"{place}: {count} super users" for place, count in many.items()],
            "Give rights by rules instead: odradek acl add --allow-principal User:NAME --operation … --topic …",
        )


def wildcard_rules(facts: SecurityFacts) -> Iterator[Finding]:
    assert facts.acls is not None
    allowed = [each for each in facts.acls if each.permission == Permission.ALLOW]
    everybody = [each for each in allowed if str(each.principal) in EVERYBODY and each.operation not in READS]
    if everybody:
        yield problem(
            "rules allow everybody to change something",
            map(_rule, everybody),
            "Name principals instead: odradek acl list --principal 'User:*', then odradek acl remove …",
        )
    everything = [
        each
        for each in allowed
        if each.operation == Operation.ALL and each.resource_name == "*" and str(each.principal) not in EVERYBODY
    ]
    if everything:
        yield warning(
            "rules allow all operations on all resources of a type",
            map(_rule, everything),
            "Allow the operations and names that are needed: odradek acl add --producer or --consumer",
        )


def anonymous_clients(facts: SecurityFacts) -> Iterator[Finding]:
    """What a client without credentials was answered, not what settings promise."""
    assert facts.anonymous is not None
    found = [(each, _changes(each)) for each in facts.anonymous]
    some = [(each, words) for each, words in found if words]
    if some:
        is_exposed = any(each.listener.is_exposed for each, _ in some)
        yield Finding(
            Severity.PROBLEM if is_exposed else Severity.WARNING,
            "clients without credentials may change or read things",
            tuple(f"{each.listener.place}: {words}" for each, words in some),
            "Turn on authentication and access control lists (docs/security.md), and see what is left: "
            "odradek acl check User:ANONYMOUS Write topic:NAME",
        )


def _changes(rights: AnonymousRights) -> str:
    cluster = [each for each in rights.cluster_operations if each not in HARMLESS]
    topics = [topic for topic, operations in rights.topics.items() if set(operations) - HARMLESS]
    words = [f"{', '.join(cluster)} on the cluster"] if cluster else []
    words += [f"{count_text(len(topics), 'topic')}, such as {topics[0]}"] if topics else []
    return "; ".join(words)


def _rule(rule: AclBinding) -> str:
    return (
        f"{rule.principal} from {rule.host}: {Operation(rule.operation).name} on "
        f"{rule.resource_type.name} {rule.resource_name}"
    )
