"""What the permissions of streams allow beside access control lists."""

from typing import NamedTuple

import pytest

from odradek.security.acls.bindings import AclBinding, PatternType, Permission
from odradek.security.acls.decisions import AccessRules, Actor, Reason, decide, decide_for_any
from odradek.security.acls.index import AclDraft, AclIndex
from odradek.security.acls.stream_permissions import Members, StreamPermissions, parse_members
from odradek.security.authorizer import Operation, ResourceType

READ, WRITE, CREATE, DELETE, ALTER = (
    Operation.READ, Operation.WRITE, Operation.CREATE, Operation.DELETE, Operation.ALTER,
)  # fmt: skip
DESCRIBE, ALTER_CONFIGS, DESCRIBE_CONFIGS = Operation.DESCRIBE, Operation.ALTER_CONFIGS, Operation.DESCRIBE_CONFIGS
EVERYTHING = Operation.ALL
ALL = (EVERYTHING, READ, WRITE, CREATE, DELETE, ALTER, DESCRIBE, ALTER_CONFIGS, DESCRIBE_CONFIGS)
TOPIC = "/plant/pumps:warning"


class Stream(NamedTuple):
    permissions: dict[str, str]


def index(*bindings: AclBinding) -> AclIndex:
    draft = AclDraft(AclIndex())
    for binding in bindings:
        draft.add(binding)
    return draft.finish()


def allowed(
    permissions: dict[str, str], principal: str = "User:ann", name: str = TOPIC, members: Members | None = None
) -> set[Operation]:
    streams = StreamPermissions({"/plant/pumps": Stream(permissions)}, members or Members())
    actor = Actor(principal, "10.0.0.1")
    return {
        operation
        for operation in ALL
        if decide(index(), AccessRules(), actor, operation, ResourceType.TOPIC, name, streams).is_allowed
    }


@pytest.mark.parametrize(
    ("permission", "operations"),
    [
        ("produce", {WRITE, CREATE, DESCRIBE}),
        ("consume", {READ, DESCRIBE}),
        ("topic", {CREATE, DELETE, ALTER, DESCRIBE}),
        ("admin", {EVERYTHING, ALTER_CONFIGS, DESCRIBE_CONFIGS, DESCRIBE}),
        ("copy", {READ, WRITE, CREATE, DESCRIBE, DESCRIBE_CONFIGS}),
    ],
)
def test_each_permission_allows_its_operations_on_topics_and_on_the_stream(
    permission: str, operations: set[Operation]
) -> None:
    given = {permission: "u:ann"}
    assert allowed(given) == operations
    assert allowed(given, name="/plant/pumps:") == operations
    assert allowed(given, "User:bob") == allowed(given, "Service:ann") == set()
    for other in ("/plant/pumps", "/plant/pumpsx:a", "/plant:pumps", "/plant/pumps/deep:a", "plant.pumps..warning"):
        assert allowed(given, name=other) == set()


def test_groups_and_roles_are_those_of_the_members_file() -> None:
    members = parse_members("# the plant\ng:plant = ann, bob\n\nr:guest = bob # for now\ng:empty =\n")
    expression = {"consume": "g:plant & !r:guest"}
    assert allowed(expression, "User:ann", members=members) == {READ, DESCRIBE}
    assert allowed(expression, "User:bob", members=members) == set()
    assert allowed(expression, "User:eve", members=members) == set()


@pytest.mark.parametrize("text", ["plant = ann", "g:plant ann", "g: = ann", "u:ann = bob", "\n\nx:a = b"])
def test_a_line_of_the_members_file_that_cannot_be_read_is_named(text: str) -> None:
    with pytest.raises(ValueError, match=rf"line {text.count(chr(10)) + 1} is not g:GROUP"):
        parse_members(text)


def rule(permission: Permission, operation: Operation = READ) -> AclBinding:
    return AclBinding(ResourceType.TOPIC, "/plant/", PatternType.PREFIXED, "User:ann", "*", operation, permission)


def test_super_users_and_rules_come_before_the_permissions_of_a_stream() -> None:
    streams = StreamPermissions({"/plant/pumps": Stream({"consume": "u:ann"})})
    actor = Actor("User:ann", "10.0.0.1")

    def reason(acls: AclIndex, *super_users: str) -> tuple[bool, Reason, str | None]:
        decision = decide(acls, AccessRules(frozenset(super_users)), actor, READ, ResourceType.TOPIC, TOPIC, streams)
        return decision.is_allowed, decision.reason, decision.permission

    assert reason(index()) == (True, Reason.STREAM, "consume")
    assert reason(index(rule(Permission.ALLOW))) == (True, Reason.ACL, None)
    assert reason(index(rule(Permission.DENY))) == (False, Reason.ACL, None)
    assert reason(index(rule(Permission.DENY)), "User:ann") == (True, Reason.SUPER_USER, None)
    assert reason(index(rule(Permission.ALLOW, WRITE))) == (True, Reason.STREAM, "consume")


def test_a_topic_of_a_stream_is_not_one_without_rules() -> None:
    """`allow.everyone.if.no.acl.found` opens ordinary topics without rules to everybody."""
    streams = StreamPermissions({"/plant/pumps": Stream({"consume": "", "produce": "u:x |"})})
    rules = AccessRules(allow_without_acls=True)
    actor = Actor("User:ann", "10.0.0.1")
    for operation, name, is_allowed in ((READ, TOPIC, False), (WRITE, TOPIC, False), (READ, "plain", True)):
        assert decide(index(), rules, actor, operation, ResourceType.TOPIC, name, streams).is_allowed is is_allowed


def test_a_stream_counts_where_any_topic_does() -> None:
    streams = StreamPermissions({"/plant/pumps": Stream({"produce": "u:ann"})})

    def any_topic(principal: str, operation: Operation) -> bool:
        actor = Actor(principal, "10.0.0.1")
        return decide_for_any(index(), AccessRules(), actor, operation, ResourceType.TOPIC, streams)

    assert any_topic("User:ann", WRITE)
    assert not any_topic("User:ann", READ)
    assert not any_topic("User:bob", WRITE)
