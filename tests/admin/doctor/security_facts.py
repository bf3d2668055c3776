"""Facts of a secured cluster, and changes of them."""

from __future__ import annotations

from typing import Any

from odradek.admin.doctor.security_facts import ListenerFacts, SecurityFacts, TlsFacts
from odradek.security.acls.bindings import AclBinding, PatternType, Permission
from odradek.security.authorizer import Operation, ResourceType

SETTINGS = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:admin;User:broker",
    "allow.everyone.if.no.acl.found": "false",
    "auto.create.topics.enable": "false",
    "audit.log.max.bytes": "1000",
    "audit.log.path": "/var/log/audit.log",
    "security.inter.broker.protocol": "SSL",
    "ssl.client.auth": "required",
}


def listener(protocol: str = "SSL", host: str = "", **settings: str) -> ListenerFacts:
    given = {name.replace("_", "."): value for name, value in settings.items()}
    return ListenerFacts(1, protocol, protocol, host, "kafka-1", 9092, {**SETTINGS, **given})


def tls(days_left: float = 90, versions: tuple[str, ...] = ("TLSv1.2", "TLSv1.3"), **more: Any) -> TlsFacts:
    return TlsFacts(listener(), days_left, versions, **more)


def rule(principal: str, operation: Operation, name: str = "orders") -> AclBinding:
    return AclBinding(ResourceType.TOPIC, name, PatternType.LITERAL, principal, "*", operation, Permission.ALLOW)


def brokers(**settings: str) -> dict[int, dict[str, str]]:
    given = {name.replace("_", "."): value for name, value in settings.items()}
    return {1: {**SETTINGS, **given}, 2: dict(SETTINGS)}


def secured(**changes: Any) -> SecurityFacts:
    facts = SecurityFacts(
        cluster_id="id",
        brokers=brokers(),
        listeners=[listener(), listener("PLAINTEXT", "127.0.0.1")],
        tls=[tls()],
        anonymous=[],
        acls=[rule("User:alice", Operation.WRITE), rule("User:*", Operation.READ)],
        iterations={"alice": 4096},
        quota_count=1,
        files=[],
        consoles=[],
    )
    for name, value in changes.items():
        setattr(facts, name, value)
    return facts
