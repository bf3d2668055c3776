"""Which rules a filter selects."""

import pytest

from odradek.security.acls.bindings import AclBinding, AclFilter, PatternType, Permission
from odradek.security.authorizer import Operation, ResourceType

TOPIC, GROUP = ResourceType.TOPIC, ResourceType.GROUP
LITERAL, PREFIXED = PatternType.LITERAL, PatternType.PREFIXED


def rule(name: str, pattern: PatternType = LITERAL) -> AclBinding:
    return AclBinding(TOPIC, name, pattern, "User:alice", "*", Operation.READ, Permission.ALLOW)


RULES = {name: rule(name) for name in ("orders", "*", "payments")} | {"ord-": rule("ord", PREFIXED)}


@pytest.mark.parametrize(
    ("acl_filter", "selected"),
    [
        (AclFilter(), ["orders", "*", "payments", "ord-"]),
        (AclFilter(TOPIC, "orders", PatternType.MATCH), ["orders", "*", "ord-"]),
        (AclFilter(TOPIC, "orders", PatternType.ANY), ["orders"]),
        (AclFilter(TOPIC, "orders", LITERAL), ["orders"]),
        (AclFilter(TOPIC, "*", LITERAL), ["*"]),
        (AclFilter(TOPIC, "ord", PREFIXED), ["ord-"]),
        (AclFilter(TOPIC, None, PREFIXED), ["ord-"]),
        (AclFilter(GROUP), []),
        (AclFilter(principal="User:bob"), []),
        (AclFilter(host="10.0.0.1"), []),
        (AclFilter(operation=Operation.WRITE), []),
        (AclFilter(permission=Permission.DENY), []),
        (AclFilter(TOPIC, "payments", LITERAL, "User:alice", "*", Operation.READ, Permission.ALLOW), ["payments"]),
    ],
)
def test_a_filter_selects(acl_filter: AclFilter, selected: list[str]) -> None:
    assert [name for name, binding in RULES.items() if acl_filter.matches(binding)] == selected
