"""The shorthands stand for the operations that kafka-acls gives."""

import pytest

from odradek.admin.acls import (
    Access,
    Selection,
    Subjects,
    bindings,
    describe,
    parse_resource,
    unsupported_operation,
)
from odradek.security.acls.bindings import AclBinding, PatternType, Permission
from odradek.security.authorizer import Operation, ResourceType

TOPIC, GROUP, CLUSTER = ResourceType.TOPIC, ResourceType.GROUP, ResourceType.CLUSTER
ALICE = Subjects(("User:alice",), (), Permission.ALLOW)


def rights(access: Access, selection: Selection) -> set[tuple[str, str]]:
    made = bindings(selection, access, [ALICE], PatternType.LITERAL)
    return {(each.resource_type.name, each.operation.name) for each in made}


def test_a_producer_writes_describes_and_creates() -> None:
    selection = Selection(topics=("t",), transactional_ids=("x",))
    assert rights(Access(producer=True, idempotent=True), selection) == {
        ("TOPIC", "WRITE"),
        ("TOPIC", "DESCRIBE"),
        ("TOPIC", "CREATE"),
        ("TRANSACTIONAL_ID", "WRITE"),
        ("TRANSACTIONAL_ID", "DESCRIBE"),
        ("CLUSTER", "IDEMPOTENT_WRITE"),
    }


def test_a_consumer_reads_topics_and_groups() -> None:
    selection = Selection(topics=("t",), groups=("g",))
    expected = {("TOPIC", "READ"), ("TOPIC", "DESCRIBE"), ("GROUP", "READ")}
    assert rights(Access(consumer=True), selection) == expected
    assert rights(Access(consumer=True, producer=True), selection) == expected | {
        ("TOPIC", "WRITE"),
        ("TOPIC", "CREATE"),
    }


def test_hosts_and_patterns_belong_to_every_rule() -> None:
    eve = Subjects(("User:eve", "User:bob"), ("10.0.0.1", "10.0.0.2"), Permission.DENY)
    made = bindings(Selection(topics=("t",), cluster=True), Access((Operation.ALTER,)), [eve], PatternType.PREFIXED)
    assert len(made) == 8
    patterns = {each.resource_type: each.pattern_type for each in made}
    assert patterns == {TOPIC: PatternType.PREFIXED, CLUSTER: PatternType.LITERAL}


@pytest.mark.parametrize(
    ("access", "selection", "problem"),
    [
        (Access(producer=True, operations=(Operation.READ,)), Selection(topics=("t",)), "exclude each other"),
        (Access(), Selection(), "name a resource"),
        (Access(consumer=True), Selection(topics=("t",)), "needs --group"),
        (Access(producer=True), Selection(groups=("g",)), "need --topic"),
        (Access(idempotent=True), Selection(topics=("t",)), "needs --producer"),
    ],
)
def test_options_that_do_not_belong_together(access: Access, selection: Selection, problem: str) -> None:
    found = access.problem(selection)
    assert found is not None
    assert problem in found


def test_an_operation_that_means_nothing_is_named() -> None:
    problem = unsupported_operation(Access((Operation.WRITE,)), Selection(groups=("g",)))
    assert problem is not None
    assert "Write is no operation on a group" in problem


@pytest.mark.parametrize(
    ("text", "parsed"),
    [
        ("topic:a:b", (TOPIC, "a:b")),
        ("group:g", (GROUP, "g")),
        ("cluster", (CLUSTER, "kafka-cluster")),
        ("topic:", None),
        ("orders", None),
        ("cluster:other", None),
        ("user:User:bob", (ResourceType.USER, "User:bob")),
        ("delegation-token:id", (ResourceType.DELEGATION_TOKEN, "id")),
        ("user:", None),
    ],
)
def test_resources_are_parsed(text: str, parsed: tuple[ResourceType, str] | None) -> None:
    assert parse_resource(text) == parsed


def test_a_rule_is_a_sentence() -> None:
    rule = AclBinding(TOPIC, "log-", PatternType.PREFIXED, "User:*", "::1", Operation.DESCRIBE_CONFIGS, Permission.DENY)
    assert describe(rule) == "User:* may not DescribeConfigs on topics that begin with log- from ::1"
    everything = rule._replace(operation=Operation.ALL, permission=Permission.ALLOW, host="*")
    assert describe(everything) == "User:* may do everything on topics that begin with log- from every host"
