"""Decisions name the rule that made them."""

from typing import Any

import pytest

from odradek.security.acls.bindings import AclBinding, PatternType, Permission
from odradek.security.acls.decisions import AccessRules, Actor, Decision, Reason, decide, decide_for_any, is_same_host
from odradek.security.acls.index import AclDraft, AclIndex
from odradek.security.authorizer import Operation, ResourceType

TOPIC = ResourceType.TOPIC
ALICE = Actor("User:alice", "10.0.0.1")


def rule(name: str = "orders", **values: Any) -> AclBinding:
    plain = AclBinding(TOPIC, name, PatternType.LITERAL, "User:alice", "*", Operation.READ, Permission.ALLOW)
    return plain._replace(**values)


def indexed(*rules: AclBinding) -> AclIndex:
    draft = AclDraft(AclIndex())
    for each in rules:
        draft.add(each)
    return draft.finish()


def decision(
    *rules: AclBinding, operation: Operation = Operation.READ, settings: AccessRules | None = None
) -> Decision:
    return decide(indexed(*rules), settings or AccessRules(), ALICE, operation, TOPIC, "orders")


def test_the_rule_that_allows_is_named() -> None:
    assert decision(rule()) == Decision(True, Reason.ACL, rule())


def test_a_denial_decides_before_everything_that_allows() -> None:
    denial = rule("ord", pattern_type=PatternType.PREFIXED, principal="User:*", permission=Permission.DENY)
    assert decision(rule(), rule("*"), denial) == Decision(False, Reason.ACL, denial)


def test_a_super_user_is_not_asked_for_rules() -> None:
    denial = rule(permission=Permission.DENY)
    settings = AccessRules(super_users=frozenset({"User:alice"}))
    assert decision(denial, settings=settings) == Decision(True, Reason.SUPER_USER)


def test_a_resource_without_rules_follows_the_setting() -> None:
    assert decision(rule("payments")) == Decision(False, Reason.RESOURCE_WITHOUT_ACLS)
    everyone = AccessRules(allow_without_acls=True)
    assert decision(rule("payments"), settings=everyone) == Decision(True, Reason.RESOURCE_WITHOUT_ACLS)
    assert decision(rule(principal="User:bob"), settings=everyone) == Decision(False, Reason.NO_ACL_ALLOWS)


@pytest.mark.parametrize("operation", [Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER])
def test_describe_is_implied_by_what_needs_it_but_not_denied_by_it(operation: Operation) -> None:
    allowing, denying = rule(operation=operation), rule(operation=operation, permission=Permission.DENY)
    assert decision(allowing, operation=Operation.DESCRIBE).is_allowed
    assert decision(rule(operation=Operation.ALL), denying, operation=Operation.DESCRIBE).is_allowed


def test_the_wildcard_applies_to_names_that_begin_with_it() -> None:
    """Kafka's scan leaves out the wildcard there, so that a denial of everything has no effect on such groups."""
    index = indexed(rule("*", permission=Permission.DENY), rule("*a"))
    assert not decide(index, AccessRules(), ALICE, Operation.READ, TOPIC, "*a").is_allowed


@pytest.mark.parametrize(
    ("named", "host", "is_same"),
    [
        ("*", "10.0.0.1", True),
        ("10.0.0.1", "10.0.0.1", True),
        ("10.0.0.1", "10.0.0.2", False),
        ("::1", "0:0:0:0:0:0:0:1", True),
        ("10.0.0.1", "::ffff:10.0.0.1", True),
        ("fe80::1", "fe80::1%eth0", True),
        ("example.org", "::1", False),
    ],
)
def test_hosts_are_compared_as_addresses(named: str, host: str, is_same: bool) -> None:
    assert is_same_host(named, host) is is_same


def test_writing_to_any_topic_needs_one_that_is_not_denied() -> None:
    writes = rule(operation=Operation.WRITE)
    covered = rule("ord", pattern_type=PatternType.PREFIXED, operation=Operation.WRITE, permission=Permission.DENY)

    def may_write(*rules: AclBinding) -> bool:
        return decide_for_any(indexed(*rules), AccessRules(), ALICE, Operation.WRITE, TOPIC)

    assert may_write(writes)
    assert not may_write(rule())
    assert not may_write(writes, covered)
    assert may_write(writes, covered, rule("payments", operation=Operation.WRITE))
