"""The rights under which every API is called: each right alone, and all rights but one."""

from typing import NamedTuple

from odradek.security.acls.bindings import AclBinding, PatternType, Permission
from odradek.security.authorizer import CLUSTER_NAME, SUPPORTED_OPERATIONS, Operation, ResourceType

ADMIN_HOST, CLIENT_HOST = "127.0.0.1", "127.0.0.2"
PRINCIPAL = "User:ANONYMOUS"
TYPES = (ResourceType.TOPIC, ResourceType.GROUP, ResourceType.CLUSTER, ResourceType.TRANSACTIONAL_ID)


class Names(NamedTuple):
    """The resources of one case. Others exist, which the client must not learn of."""

    topic: str
    missing_topic: str
    group: str
    transactional_id: str

    def of(self, resource_type: ResourceType) -> tuple[str, ...]:
        if resource_type is ResourceType.TOPIC:
            return self.topic, self.missing_topic
        return {
            ResourceType.GROUP: (self.group,),
            ResourceType.TRANSACTIONAL_ID: (self.transactional_id,),
            ResourceType.CLUSTER: (CLUSTER_NAME,),
        }[resource_type]


class Rights(NamedTuple):
    """One case: what the client has, and what is denied to it."""

    label: str
    allowed: tuple[tuple[ResourceType, Operation], ...]
    denied: tuple[tuple[ResourceType, Operation], ...] = ()

    def bindings(self, names: Names) -> list[AclBinding]:
        return [
            AclBinding(kind, name, PatternType.LITERAL, PRINCIPAL, CLIENT_HOST, operation, permission)
            for permission, rights in ((Permission.ALLOW, self.allowed), (Permission.DENY, self.denied))
            for kind, operation in rights
            for name in names.of(kind)
        ]


ALL = tuple((kind, Operation.ALL) for kind in TYPES)
SINGLE = tuple((kind, operation) for kind in TYPES for operation in (*SUPPORTED_OPERATIONS[kind], Operation.ALL))


def _label(kind: ResourceType, operation: Operation) -> str:
    return f"{operation.name} {kind.name}"


CASES = (
    Rights("none", ()),
    *(Rights(f"only {_label(*right)}", (right,)) for right in SINGLE),
    *(Rights(f"all but {_label(*right)}", ALL, (right,)) for right in SINGLE),
    Rights("all", ALL),
)


def names_of(number: int) -> Names:
    return Names(f"topic-{number}", f"missing-{number}", f"group-{number}", f"transaction-{number}")


def admin_bindings() -> list[AclBinding]:
    """All rights on everything, for one address. They apply to every resource, so that nobody else has any right."""
    return [
        AclBinding(
            kind,
            CLUSTER_NAME if kind is ResourceType.CLUSTER else "*",
            PatternType.LITERAL,
            PRINCIPAL,
            ADMIN_HOST,
            Operation.ALL,
            Permission.ALLOW,
        )
        for kind in TYPES
    ]
